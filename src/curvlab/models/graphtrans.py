"""GraphTrans: Representing long-range context for graph neural networks with global attention.

Wu et al. 2021, arXiv:2201.08821.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.models.encoder import Encoder, FlatEncoder
from curvlab.models.gcn import GCN
from curvlab.models.widths import check_divides
from curvlab.options import Dropout, PositiveInt


class FrontGCN(GCN):
    """The network in front: a GCN that normalises and activates its last layer too.

    Args:
        in_channels: number of input features.
        dim: width.
        layers: number of layers.
        dropout: of every layer's input.
    """

    def __init__(
        self, in_channels: int, dim: int, layers: PositiveInt = 2, dropout: Dropout = 0.0
    ) -> None:
        super().__init__(
            in_channels,
            dim=dim,
            layers=layers,
            dropout=dropout,
            skip_average=False,
            normalisation="batch",
            last_activation=True,
        )


class GraphTrans(FlatEncoder):
    """`H = LN(GNN(X, E))`, then post-norm transformer layers over all nodes of H.

    The graph enters by the network in front alone. PyTorch's own layers; time is quadratic in the
    nodes, and the scores are never kept where the device has a kernel for that.

    Shapes: as its graph network's; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        graph_network: makes the network in front of `in_channels` and `dim`.
        dim: width of both.
        layers: of the transformer.
        heads: of attention, which divide the width.
        ffn_dim: inner width of the feed-forward networks.
        dropout: of the transformer.

    Source: Section 3, without its token for the whole graph.
    """

    def __init__(
        self,
        in_channels: int,
        graph_network: Callable[..., Encoder] = FrontGCN,
        dim: PositiveInt = 64,
        layers: PositiveInt = 2,
        heads: PositiveInt = 1,
        ffn_dim: PositiveInt = 256,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        self.graph_network = graph_network(in_channels=in_channels, dim=dim)
        self.norm = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, ffn_dim, dropout, "relu", batch_first=True)
            for _ in range(layers)
        )
        self.dim = dim

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = self.norm(self.graph_network(batch)).unsqueeze(0)
        for layer in self.layers:
            x = layer(x)
        return x.squeeze(0)

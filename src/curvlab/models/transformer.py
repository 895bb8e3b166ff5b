"""A plain transformer whose tokens are all nodes; it sees no edge."""

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.encoder import FlatEncoder
from curvlab.models.widths import check_divides
from curvlab.options import Dropout, PositiveInt


class NodeTransformer(FlatEncoder):
    """Pre-norm layers of softmax attention over all nodes, without encodings of the graph.

    PyTorch's own layers, whose attention never keeps the scores where the device has a kernel for
    that; time is quadratic in the nodes.

    Shapes: `batch.x [nodes, in_channels]`; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width.
        layers: number of layers.
        heads: of attention, which divide the width.
        dropout: of the layers.

    Source: PolyFormer, Table 4, where it scores as the MLP does.
    """

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        heads: PositiveInt = 1,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        self.input = FeatureLinear(in_channels, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, heads, 2 * dim, dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.input.out_features

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = self.input(SparseGraph.of(batch).features).unsqueeze(0)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x.squeeze(0))

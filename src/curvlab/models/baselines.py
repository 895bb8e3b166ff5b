"""The baselines whose layers PyTorch Geometric has, through one adapter."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.activations import activation_function
from curvlab.manifolds import Euclidean
from curvlab.models.encoder import Encoder


class GraphNetwork(Encoder):
    """A stack of layers of one kind: graph to Euclidean node embeddings.

    The last layer's output is activated only if it is averaged with the output of the same layer
    on the graph without edges, `(f(x, {}) + act(f(x, E))) / 2`: the "skip" of the code of Q-GCN
    (Xiong et al. 2022), without which reconstruction is several points worse.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        layer: makes one layer from its input and output widths.
        adjacency: what a layer is given of the graph: `none`, `edge_index`, or `csr`, a sparse
            matrix, for layers that aggregate before they project.
        dim: width of hidden layers and embeddings.
        layers: number of layers.
        activation: `relu`, `elu`, `tanh` or `sigmoid`.
        dropout: of every layer's input.
        skip_average: see above.
        heads: outputs of width `dim / heads` that a layer concatenates.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[[int, int], nn.Module],
        adjacency: str,
        dim: int,
        layers: int,
        activation: str,
        dropout: float,
        skip_average: bool,
        heads: int = 1,
    ) -> None:
        super().__init__()
        if adjacency not in ("none", "edge_index", "csr"):
            raise UsageError(f"adjacency is 'none', 'edge_index' or 'csr', not {adjacency!r}")
        if dim % heads:
            raise UsageError(f"model.heads={heads} does not divide model.dim={dim}")
        self.layers = nn.ModuleList(
            layer(width, dim // heads) for width in [in_channels] + [dim] * (layers - 1)
        )
        self.adjacency = adjacency
        self.activation = activation_function(activation)
        self.dropout = dropout
        self.skip_average = skip_average
        self.space = Euclidean(conformal_factor=1.0)

    @property
    def manifold_out(self) -> Euclidean:
        """Flat space with the ordinary distance."""
        return self.space

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, dim]`."""
        graph = self._graph(batch)
        x = batch.x
        for layer in self.layers[:-1]:
            x = self.activation(self._propagate(layer, x, graph))
        last = self._propagate(self.layers[-1], x, graph)
        if not self.skip_average:
            return last
        no_edges = (batch.edge_index[:, :0],) if graph else ()
        alone = self._propagate(self.layers[-1], x, no_edges)
        return (alone + self.activation(last)) / 2

    def _graph(self, batch: Data) -> tuple[Tensor, ...]:
        """What a layer is given after its input."""
        if self.adjacency == "none":
            return ()
        return (batch.adj_t,) if self.adjacency == "csr" else (batch.edge_index,)

    def _propagate(self, layer: nn.Module, x: Tensor, graph: tuple[Tensor, ...]) -> Tensor:
        """One layer after dropout of its input."""
        return layer(F.dropout(x, self.dropout, self.training), *graph)

"""Graph convolutions between tangent spaces at the origin: what HGCN, HGAT, HAT, ... share.

Layers return logarithms at the origin: the exponential at the end of a layer and the logarithm at
the beginning of the next cancel, except for points at the rim of the ball. So an activation
between two curvatures, `exp_0'(act(log_0 x))`, acts on tangent vectors.

Neighbourhoods are `batch.adj_t [nodes, nodes]`, sparse CSR of ones with self-loops, rows targets.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, SparseAdjacency
from curvlab.layers.activations import activation_function
from curvlab.layers.sparse_graph import SparseGraph, SparseMatrix
from curvlab.layers.stereographic import StereographicLinear
from curvlab.manifolds import EmbeddingSpace, PoincareBall, Stereographic
from curvlab.models.encoder import Encoder
from curvlab.options import Activation, Dropout, PositiveInt

S = TypeVar("S", bound=EmbeddingSpace)

FIXED_BALL = partial(PoincareBall, learnable=False)
"""Makes the space of models whose curvature is fixed."""


class CurvedGCN(Encoder, Generic[S]):
    """`v_l = act(aggregate(map_l(v_{l-1})))` from the features `v_0`, embeddings `exp_0(v_L)`.

    With `skip_average` the last vectors are the mean of `v_L` and of the node's own `map_L`, as in
    the code of Q-GCN (Xiong et al. 2022): what `GraphNetwork` does, in the tangent space.

    Shapes: `batch.x [nodes, in_channels]`, `batch.adj_t [nodes, nodes]`; returns `[nodes, dim]`.

    Args:
        space: where the embeddings lie.
        dim: width of layers and embeddings.
        layers: number of layers.
        activation: of the tangent vectors.
        dropout: of the entries of the weights.
        skip_average: average the last layer without and with the graph (for reconstruction).
    """

    linears: nn.ModuleList

    def __init__(
        self,
        space: S,
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.0,
        skip_average: bool = True,
    ) -> None:
        super().__init__()
        self.space = space
        self.dim, self.depth, self.dropout = dim, layers, dropout
        self.activation = activation_function(activation)
        self.skip_average = skip_average

    @property
    def manifold_out(self) -> S:
        """The space of the embeddings."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.dim

    def transforms(self) -> Sequence[GraphTransform]:
        """Neighbourhoods with self-loops."""
        return (SparseAdjacency(self_loops=True),)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        v, adjacency = batch.x, SparseGraph.of(batch).matrix("adj_t")
        for layer in range(self.depth):
            own, aggregated = self.propagate(layer, v, adjacency)
            v = self.activation(aggregated)
        return self.embed((self.tangent(own) + v) / 2 if self.skip_average else v)

    @abstractmethod
    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """What a layer maps tangent vectors to, and the tangent vectors that aggregate it."""

    def tangent(self, own: Tensor) -> Tensor:
        """The tangent vectors of what a layer maps to."""
        return own

    @abstractmethod
    def embed(self, v: Tensor) -> Tensor:
        """Points of tangent vectors."""


class StereographicGCN(CurvedGCN[Stereographic]):
    """A `CurvedGCN` in a product of stereographic spaces."""

    def of_one_space(self, in_channels: int) -> nn.ModuleList:
        """Linear maps without bias from the features on, into the space of the embeddings."""
        return nn.ModuleList(
            StereographicLinear(
                width, self.dim, self.space, bias=False, weight_dropout=self.dropout
            )
            for width in [in_channels] + [self.dim] * (self.depth - 1)
        )

    def embed(self, v: Tensor) -> Tensor:
        """Points of tangent vectors, inside the ball."""
        return self.space.expmap0_projected(v)

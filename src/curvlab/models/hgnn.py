"""HGNN: Hyperbolic graph neural networks (Liu et al. 2019, arXiv:1910.12892)."""

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph, SparseMatrix, neighbourhood_mean
from curvlab.manifolds import Stereographic
from curvlab.models.curved_gcn import FIXED_BALL, StereographicGCN
from curvlab.options import Dropout, SpaceMaker


class HGNN(StereographicGCN):
    r"""`h_l = act(exp_0(drop(mean_N(W_l log_0 h_{l-1}))))`, with `log_0 h_0 = act(W_0 x + b_0)`.

    The activation is of the coordinates of points, which relu, elu and tanh do not lengthen.

    Args:
        in_channels: number of input features.
        manifold: makes the space.
        dropout: of the means over neighbours.
        **options: those of `CurvedGCN`; `layers` are those behind the features' map.

    Source: the paper and its code, which divides by artanh in the logarithm, where one multiplies.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = FIXED_BALL,
        dropout: Dropout = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(manifold(), dropout=dropout, **options)
        self.features = FeatureLinear(in_channels, self.dim)
        self.linears = nn.ModuleList(
            nn.Linear(self.dim, self.dim, bias=False) for _ in range(self.depth)
        )
        for linear in (self.features, *self.linears):
            nn.init.xavier_uniform_(linear.weight)
        # Beside random ones all nodes look the same, and relu goes silent: features are small.
        nn.init.zeros_(self.features.bias)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        graph = SparseGraph.of(batch)
        v = self.activation(self.features(graph.features))
        for layer in range(self.depth):
            own, v = self.propagate(layer, v, graph.matrix("adj_t"))
            h = self.space.project(self.activation(self.space.expmap0_projected(v)))
            v = self.space.logmap0(h)
        return self.embed((own + v) / 2) if self.skip_average else h

    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Linear maps of the tangent vectors and their means, dropped out."""
        own = self.linears[layer](v)
        return own, dropout(neighbourhood_mean(adjacency, own), self.dropout, self.training)

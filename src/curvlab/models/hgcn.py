"""HGCN: Hyperbolic graph convolutional neural networks (Chami et al. 2019, arXiv:1910.12933)."""

from typing import Any

from torch import Tensor, nn

from curvlab.layers.sparse_graph import SparseMatrix, neighbourhood_mean
from curvlab.layers.stereographic import StereographicLinear
from curvlab.manifolds import PoincareBall, Stereographic
from curvlab.models.curved_gcn import StereographicGCN
from curvlab.options import SpaceMaker


class HGCN(StereographicGCN):
    r"""`v_l = act(mean_N(log_0(exp_0(W_l v_{l-1}) (+) exp_0(b_l))))`, embeddings `exp_0(v_L)`.

    Every layer has a curvature of its own, and so have the embeddings.

    Args:
        in_channels: number of input features.
        manifold: makes the space of a layer.
        **options: those of `CurvedGCN`.

    Source: Section 4 and the authors' code, with its initialisation (Xavier, gain `sqrt 2`) and its
    means at the origin, without attention.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = PoincareBall,
        **options: Any,
    ) -> None:
        super().__init__(manifold(), **options)
        linears = [
            StereographicLinear(width, self.dim, manifold(), weight_dropout=self.dropout)
            for width in [in_channels] + [self.dim] * (self.depth - 1)
        ]
        for linear in linears:
            nn.init.xavier_uniform_(linear.weight, gain=2**0.5)
        self.linears = nn.ModuleList(linears)

    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Logarithms `[nodes, dim]` and their aggregation."""
        linear = self.linears[layer]
        assert isinstance(linear, StereographicLinear)
        own = linear.space.logmap0(linear.from_tangent(v))
        return own, self.aggregate(layer, adjacency, own)

    def aggregate(self, layer: int, adjacency: SparseMatrix, u: Tensor) -> Tensor:  # noqa: ARG002
        """Means of the neighbours' logarithms `[nodes, dim]`."""
        return neighbourhood_mean(adjacency, u)

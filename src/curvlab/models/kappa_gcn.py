"""kappa-GCN: Constant curvature graph convolutional networks.

Bachmann et al. 2020, arXiv:1911.05076.
"""

from typing import Any

import torch
from torch import Tensor

from curvlab.layers.sparse_graph import SparseMatrix, as_matrix
from curvlab.layers.stereographic import Midpoint, StereographicLinear
from curvlab.manifolds import Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.kernels import working
from curvlab.models.curved_gcn import StereographicGCN
from curvlab.models.widths import check_divides
from curvlab.options import PositiveInt, SpaceMaker


class KappaGCN(StereographicGCN):
    r"""`v_l = act(log_0(midpoint_N(exp_0(W_l v_{l-1}))))`, embeddings `exp_0(v_L)`.

    The gyro-midpoint averages neighbours in each component of a product space, whose curvatures
    have any sign and are those of all layers.

    Args:
        in_channels: number of input features.
        manifold: makes a space of so many `components`.
        components: of the product, which divide `dim`.
        midpoint: of neighbours; null: on their side of a sphere; `paper`: the printed quotient,
            which jumps to the antipode beyond the equator.
        **options: those of `CurvedGCN`.

    Source: Section 3.
    """

    revision = 3  # 2: midpoints stay on their neighbours' side of a sphere; 3: as `Encoder`

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = Stereographic,
        components: PositiveInt = 2,
        midpoint: Midpoint | None = None,
        **options: Any,
    ) -> None:
        super().__init__(manifold(components=components), **options)
        check_divides("components", components, self.dim)
        self.printed = midpoint == "paper"
        self.linears = self.of_one_space(in_channels)

    def propagate(self, layer: int, v: Tensor, adjacency: SparseMatrix) -> tuple[Tensor, Tensor]:
        """Points `[nodes, dim]` and the logarithms of their neighbourhoods' midpoints."""
        linear = self.linears[layer]
        assert isinstance(linear, StereographicLinear)
        own = linear.from_tangent(v)
        return own, self.space.logmap0(self.midpoints(adjacency, own))

    def tangent(self, own: Tensor) -> Tensor:
        """The logarithms of points."""
        return self.space.logmap0(own)

    def midpoints(self, adjacency: Tensor | SparseMatrix, x: Tensor) -> Tensor:
        """Gyro-midpoints of the points of each neighbourhood, by one sparse product."""
        factor = self.space.conformal_factor(x)
        weighted = self.space.merge(factor.unsqueeze(-1) * self.space.split(working(x)))
        sums = as_matrix(adjacency) @ torch.cat([weighted, factor - 1], -1)
        numerator, denominator = sums.split([self.dim, self.space.components], -1)
        middle = k_space.midpoint_from_sums(
            self.space.split(numerator), denominator, self.space.kappa, self.printed
        )
        return self.space.project(self.space.merge(middle))

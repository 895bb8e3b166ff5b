r"""Attention by geodesic distance: Hyperbolic Attention Networks and Hyperbolic Networks++.

Both weigh values by a softmax of negative distances and take their Einstein midpoint, which in the
ball is the gyromidpoint (HNN++) and on the hyperboloid the normalised sum of the points.
They differ in the map that makes queries, keys and values.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.layers.lorentz import LONGEST_TANGENT
from curvlab.layers.lorentz_attention import PointAttention
from curvlab.layers.row_blocks import in_blocks
from curvlab.layers.spaces import OnSpaces
from curvlab.manifolds import Lorentz
from curvlab.manifolds.kernels import curvature_like, working
from curvlab.manifolds.products import linear, product


class PoincareLinear(OnSpaces, nn.Module):
    r"""The fully connected layer of HNN++, between points in the hyperboloid's coordinates.

    In the ball of curvature -c, with `lambda = 2 / (1 - c |x|^2)`, weights `z_k` and offsets `r_k`,

        v_k = (2 |z_k| / sqrt c) arsinh( lambda sqrt c <x, z_k / |z_k|> cosh(2 sqrt c r_k)
                                         - (lambda - 1) sinh(2 sqrt c r_k) ),
        w_k = sinh(sqrt c v_k) / sqrt c,     y = w / (1 + sqrt(1 + c |w|^2)).

    On the hyperboloid `lambda x` is the space part of the input, `lambda - 1` is `sqrt c` times its
    time, and w is the space part of the output: nothing else is left. `sqrt c v_k` and
    `2 sqrt c r_k` are cut where sinh would overflow.

    Shapes: `[..., 1 + in_features] -> [..., out_features]`, the space part of the point.

    Args:
        in_features: space-like coordinates of the input.
        out_features: those of the output.
        space: where input and output lie.

    Source: Shimizu et al. 2021, Section 3.2, with its initialisation.
    """

    def __init__(self, in_features: int, out_features: int, space: Lorentz) -> None:
        super().__init__()
        self.space = space
        deviation = (2 * in_features * out_features) ** -0.5
        self.weight = nn.Parameter(deviation * torch.randn(out_features, in_features))
        self.offset = nn.Parameter(torch.zeros(out_features))

    def space_part(self, x: Tensor) -> Tensor:
        """Space parts `[..., out_features]` of the points that x `[..., 1 + in]` is mapped to."""
        root = (-curvature_like(self.space.kappa, self.weight.dtype, self.weight)).sqrt()
        length = torch.linalg.vector_norm(self.weight, dim=-1)
        normal = self.weight / length.clamp(min=torch.finfo(length.dtype).tiny).unsqueeze(-1)
        shift = (2 * root * self.offset).clamp(-2 * LONGEST_TANGENT, 2 * LONGEST_TANGENT)
        plane = torch.cat([-shift.sinh().unsqueeze(-1), normal * shift.cosh().unsqueeze(-1)], -1)
        distance = (root * working(linear(x, plane))).asinh()
        scaled = (2 * length * distance).clamp(-LONGEST_TANGENT, LONGEST_TANGENT)
        return scaled.sinh() / root


class _DistanceAttention(PointAttention):
    r"""Softmax of negative distances, `A_ij ~ exp(-beta d(q_i, k_j) - c)`, and Einstein midpoints.

    `m_i = sum_j A_ij gamma_j v_j / sum_j A_ij gamma_j` in the Klein model is the normalised sum of
    points on the hyperboloid; heads are joined by their midpoint. `beta` is positive and learned; c
    cancels in the softmax and is left out. Time is quadratic in the nodes, memory is that of a
    block of distances (`in_blocks`).
    """

    def __init__(self, dim: int, heads: int, head_dim: int, space: Lorentz) -> None:
        super().__init__(dim, heads, head_dim, space)
        self.raw_beta = nn.Parameter(torch.zeros(()))

    @property
    def beta(self) -> Tensor:
        """What distances are multiplied by."""
        return F.softplus(self.raw_beta)

    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Sums of values by a softmax of distances, points `[heads, nodes, 1 + head_dim]`."""

        def of_rows(rows: slice) -> Tensor:
            distances = self.space.pairwise_dist(query[:, rows], key)
            return product((-self.beta * distances).softmax(-1), value)

        return in_blocks(of_rows, query.shape[1], self.heads * key.shape[1])


class TangentDistanceAttention(_DistanceAttention):
    r"""Attention of Hyperbolic Attention Networks: queries, keys and values are `exp_0(W log_0 x)`.

    Weights are a softmax of `-beta d(q_i, k_j)`, `beta > 0` learned, and values are joined by their
    Einstein midpoint. Tangent vectors are cut where the exponential would overflow.

    Shapes and arguments: see `PointAttention`.

    Source: Gulcehre et al. 2019, Section 3, with the linear maps of Ganea et al. 2018.
    """

    def __init__(self, dim: int, heads: int, head_dim: int, space: Lorentz) -> None:
        super().__init__(dim, heads, head_dim, space)
        self.projection = nn.Linear(dim, 3 * heads * head_dim, bias=False)

    def projected(self, x: Tensor) -> Tensor:
        """Tangent vectors at the origin of points `[nodes, 1 + dim]`, side by side."""
        return self.projection(self.space.logmap0(x))

    def points(self, part: Tensor) -> Tensor:
        """Points `[heads, nodes, 1 + head_dim]` of tangent vectors `[nodes, heads, head_dim]`."""
        return self.space.lift(part.movedim(-2, 0), LONGEST_TANGENT)


class PoincareDistanceAttention(_DistanceAttention):
    """Attention of Hyperbolic Networks++: queries, keys and values are `PoincareLinear` maps.

    Weights are a softmax of `-tau d(q_i, k_j)`, `tau > 0` learned, and values are joined by their
    gyromidpoint. Heads have maps of their own, where the paper splits the result of one.

    Shapes and arguments: see `PointAttention`.

    Source: Shimizu et al. 2021, Section 3.4.
    """

    def __init__(self, dim: int, heads: int, head_dim: int, space: Lorentz) -> None:
        super().__init__(dim, heads, head_dim, space)
        self.projection = PoincareLinear(dim, 3 * heads * head_dim, space)

    def projected(self, x: Tensor) -> Tensor:
        """Space parts of the layer's points of `[nodes, 1 + dim]`, side by side."""
        return self.projection.space_part(x)

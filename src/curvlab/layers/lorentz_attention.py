r"""Attention between points of a hyperboloid: Hypformer's, and two kinds by geodesic distance.

One map of the points computes queries, keys and values of all heads. Linear attention (Hypformer,
Section 4.3) compares and sums their space parts; only the result gets a time. Hyperbolic Attention
Networks and Hyperbolic Networks++ weigh values by a softmax of negative distances and take their
Einstein midpoint, which is the gyromidpoint in the ball (HNN++) and the normalised sum of points on
the hyperboloid.
"""

from abc import abstractmethod
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor, nn

from curvlab.layers.lorentz import (
    LONGEST_TANGENT,
    Inner,
    LorentzLinear,
    from_space_part,
    inner_factor,
)
from curvlab.layers.row_blocks import map_row_blocks
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds.kernels import curvature_like, upcast_half
from curvlab.manifolds.matrix_products import full_precision, linear, product

SMALLEST = 1e-6
"""Number added to rectified coordinates and to sums of weights (code of Hypformer's authors)."""


def focused_features(e: Tensor, power: float, smallest: float = SMALLEST) -> Tensor:
    r"""The focused feature map `phi(e) = (|e'| / |e'^p|) e'^p`, `e' = relu(e) + smallest`.

    Powers are elementwise, and norms are over the last axis: `|phi(e)| = |e'|`. `e'` is divided by
    its largest entry before the power, so that no power underflows to 0 / 0. The paper divides `e'`
    by a scalar t. It cancels between the numerator and the denominator of attention, since phi is
    homogeneous of degree 1, and is omitted.

    Shapes: `[..., dim] -> [..., dim]`.

    Source: Hypformer, Eq. 19, which has no `smallest`; FLatten Transformer.
    """
    e = F.relu(upcast_half(e)) + smallest
    if power == 1:
        return e
    u = e / e.detach().amax(-1, keepdim=True)
    v = u.square() if power == 2 else u.pow(power)
    length = torch.linalg.vector_norm(e, dim=-1, keepdim=True)
    size = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return v * (length / size)


def focused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    power: float,
    smallest: float = SMALLEST,
    value_map: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    r"""Linear attention `phi(q) [phi(k)^T v] / (phi(q) [phi(k)^T 1] + smallest)`.

    Time and memory are linear in the nodes. With a weight W and a bias b of each head the values
    are `v = W x + b`, which are not computed: `phi(k)^T v = (phi(k)^T x) W^T + (phi(k)^T 1) b^T`.

    Shapes: query and key `[nodes, heads, dim]`, value `[nodes, heads, width]`; returns
    `[nodes, heads, width]`. With a map of `[heads, width, in_width]` and `[heads, width]` the value
    is x `[nodes, in_width]`.

    Source: Hypformer, Eqs. 16 and 17.
    """
    q = focused_features(query, power, smallest)
    k = focused_features(key, power, smallest)
    key_sums = k.sum(0)  # [heads, dim]
    if value_map is None:
        summary = k.movedim(-2, 0).mT @ value.movedim(-2, 0)
    else:
        weight, bias = value_map
        sums = (k.flatten(-2).mT @ value).unflatten(0, key_sums.shape)
        summary = sums @ weight.mT + key_sums.unsqueeze(-1) * bias.unsqueeze(-2)
    q = q.movedim(-2, 0)
    numerator = q @ summary
    denominator = q @ key_sums.unsqueeze(-1)
    return (numerator / (denominator + smallest)).movedim(0, -2)


class _Heads(TakesManifold, nn.Module):
    """Queries, keys and values of all heads, each as wide as the model, by one map of points.

    Rows of the map are `[3, heads, dim]`, for queries, keys and values.

    Args:
        dim: number of space-like coordinates of the input, the output and each head.
        heads: number of heads.
        manifold: space of the input and the output.
    """

    projection: Any

    def __init__(self, dim: int, heads: int, manifold: Lorentz) -> None:
        super().__init__()
        self.heads = heads
        self.dim = dim
        self.space = manifold

    def project(self, x: Tensor) -> Tensor:
        """Map points `[nodes, 1 + dim]` to `[nodes, 3 * heads * dim]`."""
        return self.projection.space_part(x)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = self.project(x).unflatten(-1, (3, self.heads, self.dim))
        query, key, value = parts.unbind(-3)
        return query, key, value


def _heads_linear(dim: int, heads: int, space: Lorentz) -> LorentzLinear:
    """One HTC for all heads; each matrix is drawn separately (Xavier-uniform, gain `sqrt 2`)."""
    projection = LorentzLinear(dim, 3 * heads * dim, space)
    limit = (12 / (1 + 2 * dim)) ** 0.5
    nn.init.uniform_(projection.weight, -limit, limit)
    return projection


class LorentzLinearAttention(_Heads):
    r"""Linear attention on space parts with the focused feature map (Hypformer, Eqs. 14 to 19).

    The space part is `mean_heads( phi(q) S / (phi(q) n) + psi(v) )`, with `S = phi(k)^T v`,
    `n = phi(k)^T 1` and psi a linear map that all heads share.

    Shapes: `[nodes, 1 + dim] -> [nodes, 1 + dim]`; the time of the input is a coordinate of the map
    to queries, keys and values.

    Args:
        dim: number of space-like coordinates of the input, the output and each head.
        heads: number of heads, whose mean is taken.
        manifold: space of the input and the output.
        power: exponent p of the focused feature map.

    The paper's Eq. 15 applies phi to the values too, unlike the authors' code. In Eq. 18 the output
    has another curvature than the values; here both have the same one, and the factor is 1. The
    scalar t of Eq. 19 cancels and is omitted (`focused_features`).
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        manifold: Lorentz,
        power: Annotated[float, Ge(1)] = 2.0,
    ) -> None:
        super().__init__(dim, heads, manifold)
        self.projection = _heads_linear(dim, heads, manifold)
        self.power = power
        self.psi = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        shape = (3, self.heads, self.dim)
        weights = self.projection.weight.unflatten(0, shape)
        biases = self.projection.bias.unflatten(0, shape)
        projected = F.linear(x, weights[:2].flatten(0, 2), biases[:2].flatten())
        query, key = projected.unflatten(-1, (2, *shape[1:])).unbind(-3)
        values = weights[2], biases[2]
        attended = focused_attention(query, key, x, self.power, value_map=values)
        mixed = attended.squeeze(-2) if self.heads == 1 else attended.mean(-2)
        # psi is affine: psi of the mean of the values is one map of the points.
        weight = self.psi.weight @ values[0].mean(0)
        bias = F.linear(values[1].mean(0), self.psi.weight, self.psi.bias)
        mapped = F.linear(x, weight, bias)
        return from_space_part(mixed + mapped, self.space)


class PointAttention(_Heads):
    """Attention whose queries, keys and values are points, of heads as wide as the model.

    Shapes: `[nodes, 1 + dim] -> [nodes, 1 + dim]`.

    Args:
        dim: number of space-like coordinates of the input, the output and each head.
        heads: number of heads, whose midpoint is the output.
        manifold: space of the input and the output.
    """

    @abstractmethod
    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Weighted sums of values for each query; all are points `[heads, nodes, 1 + dim]`."""

    def forward(self, x: Tensor) -> Tensor:
        sums = self.weighted_sums(*(self.points(part) for part in self.split(x)))
        points = lorentz.normalise(sums.movedim(0, -2), self.space.kappa)
        if self.heads == 1:
            return points.squeeze(-2)
        return lorentz.centroid(points, points.new_ones(self.heads), self.space.kappa)

    def points(self, part: Tensor) -> Tensor:
        """Points `[heads, nodes, 1 + dim]` of space parts `[nodes, heads, dim]`."""
        return from_space_part(part.movedim(-2, 0), self.space)


class LorentzSoftmaxAttention(PointAttention):
    r"""Softmax attention by the Lorentzian product, aggregation by the centroid (Eqs. 3 to 5).

    `A = softmax_j( 2 <q_i, k_j>_L / s )`. The output of a head is the centroid of the values with
    weights `A_ij`, and the heads are joined by their midpoint. `s` is learned, initially
    `sqrt(dim)`. The constants in the squared distance `-2 / |kappa| - 2 <q, k>_L` and in the
    authors' code cancel in the softmax and are omitted. Time is quadratic in the nodes; scores are
    computed by `torch.nn.functional.scaled_dot_product_attention`.

    With `inner="as_released"` the score is `2 |kappa| <q_i, k_j>_L / s`, as in the authors' code
    since its second release. This factor does not cancel: the softmax is flatter initially.

    Shapes, and further arguments: see `PointAttention`.

    Args:
        inner: product of the scores: None for <q, k>, or `as_released` for <q, k> / k.
    """

    def __init__(self, dim: int, heads: int, manifold: Lorentz, inner: Inner | None = None) -> None:
        super().__init__(dim, heads, manifold)
        self.inner = inner
        self.projection = _heads_linear(dim, heads, manifold)
        self.scale = nn.Parameter(torch.tensor(dim**0.5))

    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        factor = 2 * inner_factor(self.space, self.inner) / self.scale
        query = lorentz.reflect_time(query) * factor
        # PyTorch needs four dimensions for its kernel without stored scores. The product cancels
        # far out and needs full float32, also under autocast.
        with torch.autocast(query.device.type, enabled=False), full_precision():
            return F.scaled_dot_product_attention(query[None], key[None], value[None], scale=1.0)[0]


class PoincareLinear(TakesManifold, nn.Module):
    r"""The fully connected layer of HNN++, between points in the hyperboloid's coordinates.

    In the ball of curvature -c, with `lambda = 2 / (1 - c |x|^2)`, weights `z_k` and offsets `r_k`,

        v_k = (2 |z_k| / sqrt c) arsinh( lambda sqrt c <x, z_k / |z_k|> cosh(2 sqrt c r_k)
                                         - (lambda - 1) sinh(2 sqrt c r_k) ),
        w_k = sinh(sqrt c v_k) / sqrt c,     y = w / (1 + sqrt(1 + c |w|^2)).

    On the hyperboloid `lambda x` is the space part of the input, `lambda - 1` is `sqrt c` times its
    time, and w is the space part of the output. `sqrt c v_k` and `2 sqrt c r_k` are clipped where
    sinh would overflow.

    Shapes: `[..., 1 + in_features] -> [..., out_features]`, the space part of the point.

    Source: Shimizu et al. 2021, Section 3.2, with its initialisation.
    """

    def __init__(self, in_features: int, out_features: int, manifold: Lorentz) -> None:
        super().__init__()
        self.space = manifold
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
        distance = (root * upcast_half(linear(x, plane))).asinh()
        scaled = (2 * length * distance).clamp(-LONGEST_TANGENT, LONGEST_TANGENT)
        return scaled.sinh() / root


class _DistanceAttention(PointAttention):
    r"""Softmax of negative distances, `A_ij ~ exp(-beta d(q_i, k_j) - c)`, and Einstein midpoints.

    `m_i = sum_j A_ij gamma_j v_j / sum_j A_ij gamma_j` in the Klein model is the normalised sum of
    points on the hyperboloid; heads are joined by their midpoint. `beta` is positive and learned; c
    cancels in the softmax and is omitted. Time is quadratic in the nodes; memory is that of one
    block of distances (`map_row_blocks`).
    """

    def __init__(self, dim: int, heads: int, manifold: Lorentz) -> None:
        super().__init__(dim, heads, manifold)
        self.raw_beta = nn.Parameter(torch.zeros(()))

    def weighted_sums(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        beta = F.softplus(self.raw_beta)

        def attend_rows(rows: slice) -> Tensor:
            distances = self.space.pairwise_dist(query[:, rows], key)
            return product((-beta * distances).softmax(-1), value)

        return map_row_blocks(attend_rows, query.shape[1], self.heads * key.shape[1])


class TangentDistanceAttention(_DistanceAttention):
    r"""Attention of Hyperbolic Attention Networks: queries, keys and values are `exp_0(W log_0 x)`.

    Weights are a softmax of `-beta d(q_i, k_j)`, `beta > 0` learned, and values are joined by their
    Einstein midpoint. Tangent vectors are clipped where the exponential would overflow.

    Shapes and arguments: see `PointAttention`.

    Source: Gulcehre et al. 2019, Section 3, with the linear maps of Ganea et al. 2018.
    """

    def __init__(self, dim: int, heads: int, manifold: Lorentz) -> None:
        super().__init__(dim, heads, manifold)
        self.projection = nn.Linear(dim, 3 * heads * dim, bias=False)

    def project(self, x: Tensor) -> Tensor:
        return self.projection(self.space.logmap0(x))

    def points(self, part: Tensor) -> Tensor:
        return self.space.expmap0_shortened(part.movedim(-2, 0), LONGEST_TANGENT)


class PoincareDistanceAttention(_DistanceAttention):
    """Attention of Hyperbolic Networks++: queries, keys and values are `PoincareLinear` maps.

    Weights are a softmax of `-tau d(q_i, k_j)`, `tau > 0` learned, and values are joined by their
    gyromidpoint. Each head has a separate map, while the paper splits the result of one map.

    Shapes and arguments: see `PointAttention`.

    Source: Shimizu et al. 2021, Section 3.4.
    """

    def __init__(self, dim: int, heads: int, manifold: Lorentz) -> None:
        super().__init__(dim, heads, manifold)
        self.projection = PoincareLinear(dim, 3 * heads * dim, manifold)

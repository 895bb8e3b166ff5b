"""The Lorentz (hyperboloid) model of hyperbolic space, kappa < 0.

Points are `[..., 1 + dim]`, time first, with <x, x>_L = -t^2 + |s|^2 = 1 / kappa and t > 0.
`kappa` is a negative float, or a tensor of negative numbers that broadcasts against the leading
dimensions. Every function returns the dtype of its first argument, has finite gradients everywhere
and branches on no tensor's value: it refuses a float that is not negative and integer points, but
does not check a tensor of curvatures. Time is a function of space: functions use the space part if
that suffices, and compute the time of their result from it, so that results lie on the hyperboloid
up to rounding. In float32, squares of space parts overflow beyond a length of 1.8e19, at a distance
of 45 from the origin for kappa = -1.

Distances are not arcosh(kappa <x, y>_L), whose argument loses every digit at radius 10 in float32.
With the stereographic image x' = s / (1 + sqrt(1 - kappa |s|^2)) and h = 1 + sqrt(1 - kappa
|s|^2), the half-angle law of cosines is u^2 := sinh^2(sqrt(-kappa) d / 2) / -kappa =
|x' - y'|^2 h_x h_y / 4, without cancellation, and d = 2 arsin_k(u).

Source: Nickel and Kiela 2018; Law et al. 2019 (centroid); Chen et al. 2022, Fully Hyperbolic
Neural Networks; Hypformer, section 3 (change of curvature).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.manifolds import lorentz_maps as maps
from curvlab.manifolds.curved_trig import arsin_ratio, cosine, safe_sqrt, sin_ratio, tolerance
from curvlab.manifolds.kernels import (
    curvature_like,
    dot,
    join_time,
    negative_curvature,
    prepend_time,
    public_functions,
    split_time,
    squared_norm,
    upcast_half,
)
from curvlab.manifolds.pairwise import pairwise_power


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Lorentzian product -x_0 y_0 + <x_s, y_s>, `[...]` from `[..., 1 + dim]`."""
    t, s = split_time(x)
    t_y, s_y = split_time(y)
    return torch.linalg.vecdot(s, s_y) - (t * t_y).squeeze(-1)


def origin(dim: int, kappa: Tensor | float) -> Tensor:
    """The point (1 / sqrt(-kappa), 0, ..., 0), `[..., 1 + dim]` for kappa `[...]`."""
    if not isinstance(kappa, Tensor):
        return from_space(torch.zeros(dim), kappa)
    return from_space(kappa.new_zeros((*kappa.shape, dim)), kappa)


def space(x: Tensor) -> Tensor:
    """The space part `[..., dim]` of points or tangent vectors `[..., 1 + dim]`."""
    return x[..., 1:]


def reflect_time(x: Tensor) -> Tensor:
    """(-t, s), whose ordinary dot product with y is <x, y>_L, `[..., 1 + dim]`."""
    return torch.cat([-x[..., :1], space(x)], -1)


def from_space(space: Tensor, kappa: Tensor | float) -> Tensor:
    """The point with the given space part: prepends time sqrt(|s|^2 - 1 / kappa)."""
    if isinstance(kappa, Tensor) and (library := maps.functions([space], kappa)):
        return maps.from_space(library, _from_space_plain, space, kappa)
    return _from_space_plain(space, kappa)


def _from_space_plain(space: Tensor, kappa: Tensor | float) -> Tensor:
    w = upcast_half(space)
    return prepend_time(w, negative_curvature(kappa, w.dtype, w)).to(space.dtype)


def project(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Recompute the time of `[..., 1 + dim]` from its space part."""
    return from_space(space(x), kappa)


def expmap0(v: Tensor, kappa: Tensor | float) -> Tensor:
    """Exponential map at the origin of v `[..., dim]`: the space part is sin_k(|v|) v / |v|."""
    w = upcast_half(v)
    k = negative_curvature(kappa, w.dtype, w)
    return prepend_time(_along_ray(w, k, sin_ratio), k).to(v.dtype)


def logmap0(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `expmap0`: arsin_k(|s|) s / |s|, `[..., dim]` without its zero time part."""
    s = upcast_half(space(x))
    return _along_ray(s, negative_curvature(kappa, s.dtype, s), arsin_ratio).to(x.dtype)


def _along_ray(x: Tensor, k: Tensor, ratio: Callable[[Tensor], Tensor]) -> Tensor:
    """X times a ratio of kappa |x|^2, in float64: it overflows float32 beyond distance 45."""
    return x * ratio(k.double() * squared_norm(x, torch.float64)).to(x.dtype)


def _half_chord_squared(x: Tensor, y: Tensor, k: Tensor) -> Tensor:
    """u^2 = sinh^2(sqrt(-kappa) d / 2) / -kappa, `[..., 1]`, of space parts `[..., dim]`.

    u^2 = |x / h_x - y / h_y|^2 h_x h_y / 4 with h = 1 + tau, tau = sqrt(1 - kappa |x|^2), computed
    as |e - near gap / h_near|^2 h_near / (4 h_far) with e = x - y and gap = tau_x - tau_y =
    -kappa <e, x + y> / (tau_x + tau_y). `near` is the point with the smaller tau, since with the
    other point long vectors would cancel. Swapping x and y changes no digit.
    """
    tau_x = (1 - k * squared_norm(x)).sqrt()
    tau_y = (1 - k * squared_norm(y)).sqrt()
    e = x - y
    gap = -k * dot(e, x + y) / (tau_x + tau_y)
    x_is_far = gap >= 0
    near = 1 + torch.where(x_is_far, tau_y, tau_x)
    far = 1 + torch.where(x_is_far, tau_x, tau_y)
    moved = torch.addcmul(e, torch.where(x_is_far, y, x), -gap / near)
    return squared_norm(moved) * near / (4 * far)


def _half_dist_squared(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    k = negative_curvature(kappa, torch.float64, x)
    u2 = _half_chord_squared(space(x).double(), space(y).double(), k)
    return (u2 * arsin_ratio(k * u2).square()).squeeze(-1)


def sqdist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Squared geodesic distance `[...]` of points `[..., 1 + dim]`, smooth at x = y."""
    return (4 * _half_dist_squared(x, y, kappa)).to(x.dtype)


def dist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Geodesic distance arcosh(kappa <x, y>_L) / sqrt(-kappa), `[...]` from `[..., 1 + dim]`.

    The result is exactly 0 at x = y, with gradient 0. It is computed in float64 from space parts.
    """
    return (2 * safe_sqrt(_half_dist_squared(x, y, kappa))).to(x.dtype)


def dist0(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Geodesic distance to the origin, arsin_k(|s|), `[...]` from `[..., 1 + dim]`."""
    k = negative_curvature(kappa, torch.float64, x)
    s2 = squared_norm(space(x), torch.float64)
    return safe_sqrt(s2 * arsin_ratio(k * s2).square()).squeeze(-1).to(x.dtype)


def _image(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Stereographic image x' `[..., dim]` and h / 2, in float64."""
    s = space(x).double()
    h = 1 + (1 - k * squared_norm(s)).sqrt()
    return s / h, h / 2


def _pairwise(x: Tensor, y: Tensor, kappa: Tensor | float, power: int) -> Tensor:
    k = negative_curvature(kappa, torch.float64, x)
    images = *_image(x, k.unsqueeze(-1)), *_image(y, k.unsqueeze(-1))
    return pairwise_power(*images, k.squeeze(-1), power, upcast_half(x).dtype).to(x.dtype)


def pairwise_sqdist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Squared distances `[..., n, m]` of points `[..., n, 1 + dim]` and `[..., m, 1 + dim]`.

    `kappa` broadcasts against the dimensions before n and m; see `stereographic.pairwise_sqdist`.
    """
    return _pairwise(x, y, kappa, 2)


def pairwise_dist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Distances `[..., n, m]`, as `pairwise_sqdist`; the gradient at coincident points is 0."""
    return _pairwise(x, y, kappa, 1)


def expmap(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Exponential map at x of a tangent vector v, both `[..., 1 + dim]`.

    cos_k(|v|) x + sin_k(|v|) v / |v| with |v|^2 = <v, v>_L, in float64. The time of v follows from
    its space part (<x, v>_L = 0), so that |v|^2 = |v_s|^2 - <x_s, v_s>^2 / x_0^2 is not negative.
    """
    k = negative_curvature(kappa, torch.float64, x)
    s = space(x).double()
    v_s = space(v).double()
    t2 = squared_norm(s) - 1 / k
    v2 = (squared_norm(v_s) - dot(s, v_s).square() / t2).clamp(min=0)
    z = k * v2
    return prepend_time(cosine(z) * s + sin_ratio(z) * v_s, k).to(x.dtype)


def _tangent(x_space: Tensor, v_space: Tensor, k: Tensor) -> Tensor:
    """Tangent vector at x with the given space part: its time is <x_s, v_s> / x_0."""
    return join_time(dot(x_space, v_space) / (squared_norm(x_space) - 1 / k).sqrt(), v_space)


def logmap(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Logarithm at x, the inverse of `expmap`, a tangent vector `[..., 1 + dim]` at x.

    (S / sqrt(1 - z)) (y - x + 2 kappa u^2 x), z = kappa u^2, S = `arsin_ratio`(z), in float64.
    """
    k = negative_curvature(kappa, torch.float64, x)
    s = space(x).double()
    s_y = space(y).double()
    z = k * _half_chord_squared(s, s_y, k)
    direction = s_y - s + 2 * z * s
    return _tangent(s, direction * arsin_ratio(z) * (1 - z).rsqrt(), k).to(x.dtype)


def transport(x: Tensor, y: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport of v from x to y along the geodesic, all `[..., 1 + dim]`.

    v - kappa <y - x, v>_L / (2 - 2 kappa u^2) (x + y), in float64; exactly v at x = y up to
    rounding.
    """
    k = negative_curvature(kappa, torch.float64, x)
    x64 = prepend_time(space(x).double(), k)
    y64 = prepend_time(space(y).double(), k)
    z = k * _half_chord_squared(space(x64), space(y64), k)
    v64 = _tangent(space(x64), space(v).double(), k)
    push = -k * inner(y64 - x64, v64).unsqueeze(-1) / (2 * (1 - z))
    return _tangent(space(y64), space(v64 + push * (x64 + y64)), k).to(v.dtype)


def transport0(y: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport `[..., 1 + dim]` of v `[..., dim]` from the origin to y `[..., 1 + dim]`.

    v - kappa <y_s, v> / (1 + sqrt(1 - kappa |y_s|^2)) y_s in space; v is without its zero time.
    """
    k = negative_curvature(kappa, torch.float64, y)
    s = space(y).double()
    v64 = v.double()
    push = -k * dot(s, v64) / (1 + (1 - k * squared_norm(s)).sqrt())
    return _tangent(s, v64 + push * s, k).to(y.dtype)


def transport0_back(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport `[..., dim]` of v from x to the origin, the inverse of `transport0`."""
    k = negative_curvature(kappa, torch.float64, x)
    s = space(x).double()
    v64 = space(v).double()
    tau = (1 - k * squared_norm(s)).sqrt()
    return (v64 + k * dot(s, v64) / (tau * (1 + tau)) * s).to(x.dtype)


def centroid(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Weighted centroid `[..., 1 + dim]` of points `[..., n, 1 + dim]`, weights `[..., n]`.

    m / (sqrt(-kappa) sqrt(-<m, m>_L)) with m = sum_j w_j x_j, the minimiser of the weighted sum of
    squared Lorentzian distances; weights are not negative. In float64, because <m, m>_L cancels.
    `kappa` broadcasts against the dimensions before n.
    """
    k = negative_curvature(kappa, torch.float64, x)
    s = space(x).double()
    points = prepend_time(s, k.unsqueeze(-1))
    m = torch.einsum("...n,...nd->...d", weights.double(), points)
    return _normalise(m, k, torch.float64).to(x.dtype)


def _normalise(m: Tensor, k: Tensor, digits: torch.dtype) -> Tensor:
    """`normalise` in float64 of a sum whose time has the precision of `digits`."""
    t, s = split_time(m)
    t2 = t.square()
    length = torch.maximum(t2 - dot(s, s), tolerance(digits).floor * t2)
    return prepend_time(s * (-k * length).rsqrt(), k)


def normalise(m: Tensor, kappa: Tensor | float) -> Tensor:
    """The point m / (sqrt(-kappa) sqrt(-<m, m>_L)) in the direction of m `[..., 1 + dim]`.

    m is timelike: a sum of points with weights that are not negative, or a multiple of a point. Its
    length is computed from its time, in the precision of m's type.
    """
    library = maps.functions([m], kappa) if isinstance(kappa, Tensor) else None
    if library:
        assert isinstance(kappa, Tensor)
        return maps.normalise(library, _normalise_plain, m, kappa, tolerance(m.dtype).floor)
    return _normalise_plain(m, kappa)


def _normalise_plain(m: Tensor, kappa: Tensor | float) -> Tensor:
    k = negative_curvature(kappa, torch.float64, m)
    return _normalise(m.double(), k, m.dtype).to(m.dtype)


def midpoint(x: Tensor, y: Tensor, kappa: Tensor | float, weight: Tensor | float = 0.5) -> Tensor:
    """Midpoint `[..., 1 + dim]` of x and y, of the same shape, with weights 1 - weight and weight.

    s / (sqrt(-kappa) sqrt(-<s, s>_L)) with s = (1 - weight) x + weight y is the `centroid` of two
    points, here in the type of the points and without the cancellation in <s, s>_L. `weight` is in
    [0, 1] and broadcasts against the leading dimensions, as kappa does.

    Source: Law et al. 2019; Hypformer, equations 4 and 20.
    """
    library = maps.functions([x, y], kappa, weight) if isinstance(kappa, Tensor) else None
    if library:
        assert isinstance(kappa, Tensor)
        weight = torch.as_tensor(weight, dtype=x.dtype)
        return maps.midpoint(library, _midpoint_plain, x, y, kappa, weight)
    return _midpoint_plain(x, y, kappa, weight)


def _midpoint_plain(x: Tensor, y: Tensor, kappa: Tensor | float, weight: Tensor | float) -> Tensor:
    p = upcast_half(space(x))
    q = upcast_half(space(y))
    k = negative_curvature(kappa, p.dtype, p)
    w = curvature_like(weight, p.dtype, p)
    h_p = 1 + (1 - k * squared_norm(p)).sqrt()
    h_q = 1 + (1 - k * squared_norm(q)).sqrt()
    chord = squared_norm(torch.addcmul(p / h_p, q, h_q.reciprocal(), value=-1)) * h_p * h_q
    n = 1 - w * (1 - w) * k * chord  # kappa <s, s>_L
    return prepend_time(torch.lerp(p, q, w) * n.rsqrt(), k).to(x.dtype)


def change_curvature(x: Tensor, kappa_from: Tensor | float, kappa_to: Tensor | float) -> Tensor:
    """The point of another hyperboloid in the same direction: x sqrt(kappa_from / kappa_to).

    All distances are scaled by the same factor.

    Source: Hypformer, equation 5 (HTC), for f = identity.
    """
    w = upcast_half(x)
    k_from = negative_curvature(kappa_from, w.dtype, w)
    k_to = negative_curvature(kappa_to, w.dtype, w)
    return prepend_time(space(w) * (k_from / k_to).sqrt(), k_to).to(x.dtype)


def to_stereographic(x: Tensor, kappa: Tensor | float) -> Tensor:
    """The isometric point of the ball: s / (1 + sqrt(1 - kappa |s|^2)), `[..., dim]`."""
    s = upcast_half(space(x))
    k = negative_curvature(kappa, s.dtype, s)
    return (s / (1 + (1 - k * squared_norm(s)).sqrt())).to(x.dtype)


def from_stereographic(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `to_stereographic`: the space part is 2 x / (1 + kappa |x|^2)."""
    w = upcast_half(x)
    k = negative_curvature(kappa, w.dtype, w)
    gap = (1 + k * squared_norm(w)).clamp(min=tolerance(w.dtype).floor)
    return prepend_time(2 * w / gap, k).to(x.dtype)


__all__ = public_functions(globals())  # noqa: PLE0605

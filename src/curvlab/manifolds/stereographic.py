"""The kappa-stereographic model: one formula for hyperbolic, flat and spherical space.

Points are `[..., dim]` with 1 + kappa |x|^2 > 0: the open ball of radius 1 / sqrt(-kappa) for
kappa < 0, all of R^dim otherwise. The metric is lambda_x^2 times the Euclidean one, so that
dist -> 2 |x - y| and expmap0(v) -> v as kappa -> 0. `kappa` is a float or a tensor that broadcasts
against the leading dimensions of the points (`[heads]` for points `[nodes, heads, dim]`). Every
function returns the dtype of its first argument, is smooth in kappa through 0, has finite
gradients everywhere and branches on no tensor's value.

Source: FPS-T (Curve Your Attention), section 3.1, table 2 and appendix A, as corrected in the
documentation; Bachmann et al. 2020, constant curvature graph convolutional networks.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds import gyro
from curvlab.manifolds.curved_trig import arsin_ratio, safe_sqrt, tolerance
from curvlab.manifolds.kernels import (
    conformal_denominator,
    curvature_like,
    dot,
    one_plus,
    positive_curvature,
    public_functions,
    shorten,
    squared_norm,
    upcast_half,
)
from curvlab.manifolds.pairwise import pairwise_power

WIDE = torch.float64


def _radial(x: Tensor, kappa: Tensor | float, ratio: Callable[[Tensor], Tensor]) -> Tensor:
    """X times a ratio of kappa |x|^2: a map along the rays from the origin."""
    w = shorten(upcast_half(x))
    k = curvature_like(kappa, w.dtype, w)
    return (w * ratio(k * squared_norm(w))).to(x.dtype)


def _denominator(x: Tensor, kappa: Tensor | float) -> Tensor:
    """1 + kappa |x|^2 with all its digits, `[..., 1]`."""
    return conformal_denominator(x, curvature_like(kappa, x.dtype, x), WIDE)


def conformal_factor(x: Tensor, kappa: Tensor | float) -> Tensor:
    """lambda_x = 2 / (1 + kappa |x|^2), `[...]` from points `[..., dim]`."""
    return (2 / _denominator(upcast_half(x), kappa)).squeeze(-1).to(x.dtype)


def project(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Move points beyond the rim of the ball back onto it; nothing else changes.

    The rim is |x| = (1 - eps) / sqrt(-kappa), with eps = 4e-3 in float32 and 1e-5 in float64. For
    kappa >= 0 there is no rim.
    """
    return _radial(x, kappa, trig.rim_ratio)


def mobius_add(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Moebius sum of points `[..., dim]`, not commutative; x + y for kappa = 0.

    x (+) y = ((1 - 2k<x,y> - k|y|^2) x + (1 + k|x|^2) y) / (1 - 2k<x,y> + k^2 |x|^2 |y|^2)

    Computed in float64, since the terms cancel near the rim of the ball and near the antipode of
    the origin.
    """
    k = curvature_like(kappa, WIDE, x)
    return gyro.mobius_add(shorten(x.double()), shorten(y.double()), k).to(x.dtype)


def mobius_scalar_mul(r: Tensor | float, x: Tensor, kappa: Tensor | float) -> Tensor:
    """tan_k(r artan_k(|x|)) x / |x|: the point r times as far from the origin.

    `r` broadcasts like `kappa`, against the leading dimensions of `x`.
    """
    w = shorten(upcast_half(x))
    z = curvature_like(kappa, w.dtype, w) * squared_norm(w)
    stretch = curvature_like(r, w.dtype, w) * trig.artan_ratio(z, _denominator(w, kappa))
    return (w * (stretch * trig.tan_ratio(z * stretch.square()))).to(x.dtype)


def mobius_sub(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Moebius difference x (+) (-y) of points `[..., dim]`."""
    return mobius_add(x, -y, kappa)


def mobius_fn_apply(
    function: Callable[[Tensor], Tensor], x: Tensor, kappa: Tensor | float
) -> Tensor:
    """Apply a function of tangent vectors at the origin to points: exp_0(f(log_0(x))).

    Source: Ganea et al. 2018, Hyperbolic neural networks, section 3.1.
    """
    return expmap0(function(logmap0(x, kappa)), kappa)


def mobius_matvec(m: Tensor, x: Tensor, kappa: Tensor | float) -> Tensor:
    """exp_0(M log_0(x)) of a matrix `[..., out, in]` and points `[..., in]`: `[..., out]`."""
    return mobius_fn_apply(lambda v: (m @ v.unsqueeze(-1)).squeeze(-1), x, kappa)


def mobius_half(x: Tensor, kappa: Tensor | float) -> Tensor:
    """`mobius_scalar_mul(1/2, x, kappa)` in closed form: x / (1 + sqrt(1 + kappa |x|^2))."""
    w = shorten(upcast_half(x))
    return (w / (1 + _denominator(w, kappa).sqrt())).to(x.dtype)


def expmap0(v: Tensor, kappa: Tensor | float) -> Tensor:
    """Exponential map at the origin: tan_k(|v|) v / |v|.

    For kappa > 0 it is injective for |v| < pi / (2 sqrt(kappa)) and wraps around beyond.
    """
    return _radial(v, kappa, trig.tan_ratio)


def expmap0_projected(v: Tensor, kappa: Tensor | float) -> Tensor:
    """`project(expmap0(v, kappa), kappa)` with one norm and one multiplication."""
    return _radial(v, kappa, trig.tan_rim_ratio)


def logmap0(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Logarithm at the origin, the inverse of `expmap0`: artan_k(|x|) x / |x|."""
    w = shorten(upcast_half(x))
    z = curvature_like(kappa, WIDE, w) * squared_norm(w, WIDE)
    return (w * trig.artan_ratio(z.to(w.dtype), one_plus(z, w.dtype).to(w.dtype))).to(x.dtype)


def expmap(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Exponential map at x: x (+) tan_k(lambda_x |v| / 2) v / |v|."""
    w = upcast_half(x)
    return mobius_add(w, expmap0(v.to(w.dtype) / _denominator(w, kappa), kappa), kappa).to(x.dtype)


def _chord(x: Tensor, y: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """|x - y|^2, 1 + kappa |x|^2 and 1 + kappa |y|^2, `[..., 1]` in float64.

    One float32 rounding of |x|^2 would be a relative error of 3e-4 in the second at distance 10.
    """
    a = one_plus(k * squared_norm(x, WIDE), x.dtype)
    b = one_plus(k * squared_norm(y, WIDE), x.dtype)
    return squared_norm(x - y, WIDE), a, b


def logmap(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Logarithm at x, the inverse of `expmap`: (2 / lambda_x) artan_k(|w|) w / |w|, w = (-x) (+) y.

    Computed as (S / sqrt(1 - z)) (a e + kappa |e|^2 x) / b with e = y - x, a = 1 + kappa |x|^2,
    b = 1 + kappa |y|^2, z = kappa |e|^2 / (a b), S = `arsin_ratio`(z): the same vector, without
    the loss of digits of |w| near the rim. At the antipode (kappa > 0) the direction is undefined:
    the result is only finite, and its norm may be near 0. `dist` gives the right length there.
    """
    w = upcast_half(x)
    y = y.to(w.dtype)
    k = curvature_like(kappa, WIDE, w)
    e2, a, b = _chord(w, y, k)
    z = k * e2 / (a * b)
    stretch = arsin_ratio(z) * (1 - z).clamp(min=tolerance(z.dtype).floor).rsqrt() / b
    along_e = (stretch * a).to(w.dtype)
    along_x = (stretch * e2 * k).to(w.dtype)
    return torch.addcmul((y - w) * along_e, w, along_x).to(x.dtype)


def _arsin_squared(squared_chord: Tensor, kappa: Tensor) -> Tensor:
    """arsin_k(u)^2 of u^2 `[..., 1]`, analytic in u^2 and kappa, `[...]`."""
    return (squared_chord * arsin_ratio(kappa * squared_chord).square()).squeeze(-1)


def sqdist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Squared geodesic distance `[...]` of points `[..., dim]`, smooth at x = y.

    4 arsin_k(u)^2 with u^2 = |x - y|^2 / ((1 + kappa |x|^2)(1 + kappa |y|^2)), in float64.
    """
    k = curvature_like(kappa, WIDE, x)
    e2, a, b = _chord(x, y, k)
    return (4 * _arsin_squared(e2 / (a * b), k)).to(x.dtype)


def dist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Geodesic distance 2 artan_k(|(-x) (+) y|), `[...]` from points `[..., dim]`.

    The result is exactly 0 at x = y, with gradient 0. It is computed in float64.
    """
    k = curvature_like(kappa, WIDE, x)
    e2, a, b = _chord(x, y, k)
    return (2 * safe_sqrt(_arsin_squared(e2 / (a * b), k))).to(x.dtype)


def _pairwise(x: Tensor, y: Tensor, kappa: Tensor | float, power: int) -> Tensor:
    k = curvature_like(kappa, WIDE, x)
    x64 = x.double()
    y64 = y.double()
    alpha = 1 / one_plus(k.unsqueeze(-1) * squared_norm(x64), x.dtype)
    beta = 1 / one_plus(k.unsqueeze(-1) * squared_norm(y64), x.dtype)
    dtype = upcast_half(x).dtype
    return pairwise_power(x64, alpha, y64, beta, k.squeeze(-1), power, dtype).to(x.dtype)


def pairwise_sqdist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`.

    `kappa` broadcasts against the dimensions before n and m. The distances are computed by matrix
    products, in blocks if no derivative is recorded.
    """
    return _pairwise(x, y, kappa, 2)


def pairwise_dist(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`, as `pairwise_sqdist`.

    The gradient at coincident points is 0.
    """
    return _pairwise(x, y, kappa, 1)


def dist0(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Geodesic distance to the origin, 2 artan_k(|x|), `[...]` from points `[..., dim]`."""
    k = curvature_like(kappa, WIDE, x)
    x2 = squared_norm(x, WIDE)
    return (2 * safe_sqrt(_arsin_squared(x2 / one_plus(k * x2, x.dtype), k))).to(x.dtype)


def _gyrate(
    x: Tensor, y: Tensor, v: Tensor, k: Tensor, floor: torch.dtype
) -> tuple[Tensor, Tensor]:
    """gyr[y, -x] v in float64, and lambda_x / lambda_y.

    With e = y - x, a = 1 + kappa |x|^2, b = 1 + kappa |y|^2 the gyration is
    v + 2 (A e + C x) / (a b - kappa |e|^2), C = -kappa a <e,v> - kappa^2 |e|^2 <x,v>,
    A = kappa <x,v> (b - kappa |e|^2) - kappa (a - 1) <e,v>, which is exactly v at x = y. It is
    computed in float64, since the terms cancel far from the origin of a sphere.
    """
    w = shorten(x.double())
    y = shorten(y.double())
    v = v.double()
    e = y - w
    a = one_plus(k * squared_norm(w), floor)
    b = one_plus(k * squared_norm(y), floor)
    ke2 = k * squared_norm(e)
    kxv = k * dot(w, v)
    kev = k * dot(e, v)
    denominator = torch.maximum(a * b - ke2, torch.finfo(w.dtype).eps * a * b)
    along_e = 2 * (kxv * (b - ke2) - (a - 1) * kev) / denominator
    along_x = -2 * (a * kev + ke2 * kxv) / denominator
    return v + along_e * e + along_x * w, b / a


def gyration(x: Tensor, y: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """gyr[x, y] v = -(x (+) y) (+) (x (+) (y (+) v)), a rotation of v, all `[..., dim]`.

    It measures how far the Moebius sum is from being associative: x (+) (y (+) v) = (x (+) y) (+)
    gyr[x, y] v.

    Source: Ungar 2008, Analytic hyperbolic geometry and Albert Einstein's special theory of
    relativity, section 3.4.
    """
    return _gyrate(-y, x, v, curvature_like(kappa, WIDE, x), x.dtype)[0].to(x.dtype)


def transport(x: Tensor, y: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport of v from x to y: gyr[y, -x] v lambda_x / lambda_y, exactly v at x = y."""
    rotated, stretch = _gyrate(x, y, v, curvature_like(kappa, WIDE, x), x.dtype)
    return (rotated * stretch).to(x.dtype)


def inner(x: Tensor, u: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Riemannian metric lambda_x^2 <u, v> of tangent vectors at x, `[...]` from `[..., dim]`."""
    w = upcast_half(x)
    product = 4 * dot(u.to(w.dtype), v.to(w.dtype)) / _denominator(w, kappa).square()
    return product.squeeze(-1).to(x.dtype)


def norm(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Riemannian length lambda_x |v| of a tangent vector at x, `[...]`; gradient 0 at v = 0."""
    w = upcast_half(x)
    length = safe_sqrt(squared_norm(v, WIDE)).to(w.dtype)
    return (2 * length / _denominator(w, kappa)).squeeze(-1).to(x.dtype)


def geodesic(t: Tensor | float, x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """Point x (+) t (x) ((-x) (+) y) at the share t of the geodesic from x to y, `[..., dim]`.

    `t` broadcasts like `kappa`: 0 is x, 1 is y, other numbers lie on its continuation.
    """
    w = x.double()
    share = curvature_like(t, WIDE, x)
    return expmap(w, share * logmap(w, y.double(), kappa), kappa).to(x.dtype)


def _unit(v: Tensor) -> Tensor:
    """V / |v|; a vector shorter than 1e-12 has no direction and is returned unchanged."""
    length = safe_sqrt(squared_norm(v))
    return v / torch.where(length > 1e-12, length, 1.0)


def geodesic_unit(t: Tensor | float, x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Point at arc length t from x in the direction v: exp_x(t v / (lambda_x |v|)), `[..., dim]`.

    `t` broadcasts like `kappa`. For v = 0 the result is x.
    """
    w = x.double()
    u = v.double()
    length = curvature_like(t, WIDE, x)
    return expmap(w, _unit(u) * (length * _denominator(w, kappa) / 2), kappa).to(x.dtype)


def antipode(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Farthest point of a sphere (kappa > 0) from x: -x / (kappa |x|^2), `[..., dim]`.

    The antipode of the origin is the point at infinity, for which the result is only finite.

    Raises:
        UsageError: The curvature is a number that is not positive.
    """
    k = positive_curvature(kappa, WIDE, x)
    w = shorten(x.double())
    return (-w / (k * squared_norm(w)).clamp(min=torch.finfo(torch.float32).tiny)).to(x.dtype)


def dist2plane(
    x: Tensor, p: Tensor, a: Tensor, kappa: Tensor | float, signed: bool = False
) -> Tensor:
    """Distance `[...]` of x to the hyperplane of all geodesics through p orthogonal to a.

    arsin_k(2 <z, a> / ((1 + kappa |z|^2) |a|)) with z = (-p) (+) x, whose argument is
    2 (alpha <e, a> + kappa |e|^2 <p, a>) / (alpha beta |a|) of e = x - p, alpha = 1 + kappa |p|^2
    and beta = 1 + kappa |x|^2. x, p and a are `[..., dim]`; the computation is in float64. a is a
    tangent vector at p or at the origin, of any length. With `signed`, distances are positive on
    the side to which a points.

    Source: Ganea et al. 2018, Hyperbolic neural networks, theorem 5.
    """
    k = curvature_like(kappa, WIDE, x)
    w = shorten(x.double())
    p = shorten(p.double())
    a = shorten(a.double())
    e2, alpha, beta = _chord(p, w, k)
    a = _unit(a)
    u = 2 * (alpha * dot(w - p, a) + k * e2 * dot(p, a)) / (alpha * beta)
    distance = (u * arsin_ratio(k * u.square())).squeeze(-1)
    return (distance if signed else distance.abs()).to(x.dtype)


def transport0(y: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport of v from the origin to y: v (1 + kappa |y|^2)."""
    w = upcast_half(y)
    return (v.to(w.dtype) * _denominator(w, kappa)).to(y.dtype)


def transport0_back(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """Parallel transport of v from x to the origin: v / (1 + kappa |x|^2)."""
    w = upcast_half(x)
    return (v.to(w.dtype) / _denominator(w, kappa)).to(x.dtype)


def midpoint_from_sums(
    numerator: Tensor, denominator: Tensor, kappa: Tensor | float, published: bool = False
) -> Tensor:
    """The last step of a weighted midpoint, N / (D + sqrt(D^2 + kappa |N|^2)).

    `numerator` N = sum_j w_j lambda_j x_j is `[..., dim]`, `denominator` D = sum_j w_j (lambda_j -
    1) is `[...]`, of weights whose sum is positive. On the sphere this is the direction of the sum
    of the points as vectors, smooth up to and beyond the equator. Only the antipode of the origin
    is a singular point of the coordinates, where the result is only bounded. For kappa <= 0 it
    equals 1/2 (x) (N / D).

    Args:
        numerator: N.
        denominator: D.
        kappa: curvature, which broadcasts against D.
        published: take 1/2 (x) (N / D) for kappa > 0 too, as in FPS-T and kappa-GCN. It never
            leaves the half of the sphere around the origin: where D < 0 it is the antipode of the
            midpoint, and where D crosses 0 it jumps from one to the other.
    """
    w = upcast_half(numerator)
    sums = torch.cat([w, denominator.to(w.dtype).unsqueeze(-1)], dim=-1)
    k = curvature_like(kappa, w.dtype, w)
    return gyro.half_quotient(sums, k, published).to(numerator.dtype)


def midpoint(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Weighted gyro-midpoint `[..., dim]` of points `[..., n, dim]` with weights `[..., n]`.

    1/2 (x) (sum_j w_j lambda_j x_j / sum_j w_j (lambda_j - 1)), for kappa > 0 on the points' side
    of the sphere (see `midpoint_from_sums`). The scale of the weights and the sign of their sum do
    not matter. `kappa` broadcasts against the dimensions before n.

    The midpoint exists if all weights have one sign and the points do not cancel. With mixed signs
    it may not exist: if the weights add up to 0, or, for kappa < 0, if the sum of the points as
    vectors of the Lorentz model is not timelike. The result is then only finite.
    """
    weights = weights.to(upcast_half(x).dtype)
    weights = torch.where(weights.sum(-1, keepdim=True) < 0, -weights, weights)
    return midpoints(x, weights.unsqueeze(-2), kappa).squeeze(-2)


def midpoints(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Midpoints `[..., m, dim]` of points `[..., n, dim]`, a row of weights `[..., m, n]` for each.

    They are computed as in `midpoint`, by one matrix product, for weights whose sums are positive.
    `kappa` broadcasts against the dimensions before n.
    """
    w = upcast_half(x)
    k = curvature_like(kappa, w.dtype, w)
    lam = conformal_factor(w, k).unsqueeze(-1)
    sums = weights.to(w.dtype) @ torch.cat([lam * w, lam - 1], dim=-1)
    return midpoint_from_sums(sums[..., :-1], sums[..., -1], k).to(x.dtype)


arsin_k = trig.arsin_k
artan_k = trig.artan_k
sin_k = trig.sin_k
tan_k = trig.tan_k

__all__ = public_functions(globals(), "arsin_k", "artan_k", "sin_k", "tan_k")  # noqa: PLE0605

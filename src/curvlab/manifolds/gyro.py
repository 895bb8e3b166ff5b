"""Compositions of maps in layers, on blocks of stereographic coordinates, in few passes.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`. Points are projected, so that
their type has enough digits for the maps.
"""

import torch
from torch import Tensor

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.kernels import one_plus, shorten, squared_norm


def mobius_add(x: Tensor, y: Tensor, kappa: Tensor, projected: bool = False) -> Tensor:
    """Moebius sum of points `[..., dim]`, projected or not; see `stereographic.mobius_add`."""
    s = x + y
    to_s, to_x = _factors(squared_norm(x), squared_norm(y), squared_norm(s), kappa, projected)
    return (s * to_s).addcmul_(x, to_x)


def _factors(
    x2: Tensor, y2: Tensor, s2: Tensor, kappa: Tensor, projected: bool
) -> tuple[Tensor, Tensor]:
    """The factors of s = x + y and of x in the Moebius sum, from squared norms `[..., 1]`.

    The sum is (a s - kappa |s|^2 x) / (a b - kappa |s|^2), a = 1 + kappa |x|^2, b = 1 + kappa
    |y|^2. This equals the usual fraction, keeps its digits when s is small and, for kappa < 0, adds
    only positive terms in the denominator. The squared norm of the sum is |s|^2 divided by the
    denominator, so that its projection computes no further norm.
    """
    a = one_plus(kappa * x2, x2.dtype)
    b = one_plus(kappa * y2, y2.dtype)
    # The denominator is accurate to a rounding of its first term. Below that, which happens only
    # for kappa > 0, the sum is the point at infinity up to rounding.
    ab = a * b
    curved = kappa * s2
    inverse = torch.maximum(ab - curved, torch.finfo(ab.dtype).eps * ab).reciprocal()
    z = curved * inverse
    along_s = a * inverse
    if projected:
        stop = trig.rim_ratio(z)
        return along_s * stop, -z * stop
    return along_s, -z


def exp_sum(u: Tensor, v: Tensor, kappa: Tensor) -> Tensor:
    """exp_0(u) (+) exp_0(v) of vectors `[..., tokens, dim]` and one `[..., 1, dim]`, all projected.

    The result is P u + Q v with factors from |u|^2, |v|^2 and <u, v>, without intermediate points.
    """
    u = shorten(u)
    v = shorten(v)
    u2 = squared_norm(u)
    v2 = squared_norm(v)
    product = (v @ u.mT).mT
    of_u = trig.tan_rim_ratio(kappa * u2)
    of_v = trig.tan_rim_ratio(kappa * v2)
    x2 = of_u.square() * u2
    y2 = of_v.square() * v2
    s2 = torch.addcmul(x2 + y2, of_u * of_v, product, value=2)
    to_s, to_x = _factors(x2, y2, s2, kappa, projected=True)
    return (u * (of_u * (to_s + to_x))).addcmul_(v, of_v * to_s)


def limit_sums(sums: Tensor) -> Tensor:
    """Scale long sums down, for `half_quotient`, which has degree 0 in them.

    Points near the rim have sums whose squares overflow. Derivatives have degree -3 and underflow
    earlier.
    """
    return shorten(sums, 1 / 4)


def half_quotient(sums: Tensor, kappa: Tensor, published: bool = False) -> Tensor:
    """N / (D + R) with R = sqrt(D^2 + kappa |N|^2), of sums [N, D] `[..., dim + 1]`.

    This computes a midpoint from sums, see `stereographic.midpoint_from_sums`. On the sphere it is
    the point in the direction of a sum of vectors, N across the axis and D / sqrt(kappa) along it,
    analytic in both except at the antipode of the origin, N = 0 > D. For D < 0, where the
    denominator cancels, the formula is N (R - D) / (kappa |N|^2) with |N| at least a rounding of D,
    which bounds the result.

    For kappa <= 0 (where D < 0 requires weights of both signs), and in the published form for all
    kappa, the denominator is D + sign(D) R: the point is halfway to N / D.
    """
    limits = torch.finfo(sums.dtype)
    sums = limit_sums(sums)
    n = sums[..., :-1]
    d = sums[..., -1:]
    negative = d < 0
    size = torch.where(negative, -d, d)
    square = size.square()
    curved = kappa * squared_norm(n)
    # For kappa < 0 the quotient lies inside the ball; rounding may put it on the rim.
    rim = tolerance(sums.dtype).floor * square.detach()
    inside = torch.maximum(square + curved, rim)
    denominator = size + inside.clamp(min=limits.tiny**0.9).sqrt()
    factor = (1 - 2 * negative.to(d.dtype)) / denominator
    if not published:
        far = negative & (kappa > 0)
        smallest = (limits.eps**2 * square).clamp(min=limits.tiny**0.45)
        cancelled = torch.where(far, torch.maximum(curved, smallest), 1.0)
        factor = torch.where(far, denominator / cancelled, factor)
    return n * factor

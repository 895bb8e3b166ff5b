"""Maps of blocks of stereographic coordinates, as layers compose them, in few passes.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`; points are projected, so that
their own type has the digits that the maps need.
"""

import torch
from torch import Tensor

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.kernels import one_plus, squared_norm


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
    |y|^2. This equals the usual fraction; it keeps its digits when s is small and, for kappa < 0,
    adds only positive terms in the denominator. The sum's squared norm is |s|^2 over the
    denominator, so that a projection of the sum costs no norm of its own.
    """
    a, b = (one_plus(kappa * square, square.dtype) for square in (x2, y2))
    # The denominator cannot be known better than to a rounding of its first term; below that, only
    # for kappa > 0, the sum is the point at infinity up to rounding.
    ab, curved = a * b, kappa * s2
    inverse = torch.maximum(ab - curved, torch.finfo(ab.dtype).eps * ab).reciprocal()
    z = curved * inverse
    along_s = a * inverse
    if projected:
        stop = trig.rim_ratio(z)
        return along_s * stop, -z * stop
    return along_s, -z


def exp_sum(u: Tensor, v: Tensor, kappa: Tensor) -> Tensor:
    """exp_0(u) (+) exp_0(v) of vectors `[..., tokens, dim]` and one `[..., 1, dim]`, all projected.

    A combination P u + Q v with factors from |u|^2, |v|^2 and <u, v>: no point between is made.
    """
    u2 = squared_norm(u)
    v2 = squared_norm(v)
    product = (v @ u.mT).mT
    of_u, of_v = trig.tan_rim_ratio(kappa * u2), trig.tan_rim_ratio(kappa * v2)
    x2, y2 = of_u.square() * u2, of_v.square() * v2
    s2 = torch.addcmul(x2 + y2, of_u * of_v, product, value=2)
    to_s, to_x = _factors(x2, y2, s2, kappa, projected=True)
    return (u * (of_u * (to_s + to_x))).addcmul_(v, of_v * to_s)


def half_quotient(sums: Tensor, kappa: Tensor, printed: bool = False) -> Tensor:
    """N / (D + R) with R = sqrt(D^2 + kappa |N|^2), of sums [N, D] `[..., dim + 1]`.

    A midpoint of its sums, see `stereographic.midpoint_from_sums`. On the sphere this is the point
    in the direction of a sum of vectors, N across the axis and D / sqrt(kappa) along it: analytic
    in both but for the antipode of the origin, N = 0 > D. There, where the denominator cancels, it
    is N (R - D) / (kappa |N|^2), and |N| is taken to be no less than a rounding of D, which bounds
    the result.

    For kappa <= 0, where D < 0 only by weights of both signs, and in the printed form for all
    kappa, the denominator is D + sign(D) R: half the way to N / D.
    """
    limits = torch.finfo(sums.dtype)
    n = sums[..., :-1]
    d = sums[..., -1:]
    negative = d < 0
    size = torch.where(negative, -d, d)
    square = size.square()
    curved = kappa * squared_norm(n)
    # For kappa < 0 the quotient lies inside the ball; rounding may put it on the rim.
    rim = tolerance(sums.dtype).floor * square.detach()
    inside = torch.maximum(square + curved, rim)
    whole = size + inside.clamp(min=limits.tiny**0.9).sqrt()
    factor = (1 - 2 * negative.to(d.dtype)) / whole
    if not printed:
        far = negative & (kappa > 0)
        least = (limits.eps**2 * square).clamp(min=limits.tiny**0.45)
        cancelled = torch.where(far, torch.maximum(curved, least), 1.0)
        factor = torch.where(far, whole / cancelled, factor)
    return n * factor

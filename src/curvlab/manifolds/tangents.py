"""tan_k and artan_k by continued fractions: one formula for either sign of the curvature.

With z = kappa x^2 = s^2, of any sign,

    tan(s)/s  = 1 / (1 - z / (3 - z / (5 - z / (7 - ...)))),
    atan(s)/s = 1 / (1 + z / (3 + 4 z / (5 + 9 z / (7 + ...)))).

Nothing is chosen by the sign of z, there is no other formula near 0, and a level costs one
division, which is as cheap as an addition, while tanh, atan and `where` cost five to twenty times
that. The derivatives come without cancellation too: with tan(s)/s = r = 1 / (1 - z q) it is
r (r - q) / 2, and with atan(s)/s = r = 1 / (1 + z p) it is r (p - 1) / (2 (1 + z)).

A *profile* is the factor along the ray from the origin, and its derivative with respect to z: a
function of z, of 1 + z (as the caller knows it) and of whether the derivative is wanted.

Source: Lambert's fraction of the tangent and Gauss's of its inverse (Abramowitz and Stegun,
4.3.94 and 4.4.43).
"""

import math

import torch
from torch import Tensor

from curvlab.manifolds.tolerances import tolerance

Profile = tuple[Tensor, Tensor | None]

_TINY = 1e-20  # below every z that matters; its square root and cube are float32 numbers


def _fraction(z: Tensor, weights: list[float]) -> Tensor:
    """1 + w_1 z / (1 + w_2 z / (1 + ...)): the fractions above, made monic."""
    one = z.new_ones(())
    result = one
    for weight in reversed(weights):
        result = torch.addcdiv(one, z, result, value=weight)
    return result


def _tan_weights(levels: int) -> list[float]:
    return [-1 / ((2 * n + 1) * (2 * n + 3)) for n in range(1, levels)]


def _artan_weights(levels: int) -> list[float]:
    return [(n + 1) ** 2 / ((2 * n + 1) * (2 * n + 3)) for n in range(1, levels)]


class _Tangent:
    """What the profiles of the tangent share at given z.

    Attributes:
        ahead: z where z > 0, next to nothing elsewhere.
        beyond: -z where z < 0, next to nothing elsewhere.
        kept: (s - turns) / s of s = sqrt(ahead) and the multiple of pi nearest to it, which the
            tangent does not see.
        e: the monic fraction at (s - turns)^2.
        inverse: s' / tan(s') of s' = s - turns, at least 0.
    """

    def __init__(self, z: Tensor, lowest: float, levels: int) -> None:
        one = z.new_ones(())
        self.ahead, self.beyond = z.clamp(min=_TINY), (-z).clamp(min=_TINY)
        s = self.ahead.sqrt()
        turns = (s * (1 / math.pi)).round() * math.pi
        self.kept = torch.addcdiv(one, turns, s, value=-1)
        near = torch.addcmul(z, turns, torch.add(turns, s, alpha=-2)).clamp(min=lowest)
        self.e = _fraction(near, _tan_weights(levels))
        # Between two poles it is positive; rounding at a pole must not divide by 0.
        self.inverse = torch.addcdiv(one, near, self.e, value=-1 / 3).clamp(min=1e-7)

    def ratio(self, reach: float, with_slope: bool) -> Profile:
        """tan_k(x) / x, where |tan_k(x)| stops at `reach` / sqrt(-kappa)."""
        free = self.kept / self.inverse
        ratio = torch.minimum(free, reach * self.beyond.rsqrt())
        if not with_slope:
            return ratio, None
        # d(kept)/dz = (1 - kept) / (2 z); 1 / 3e is the q of the module's docstring.
        q = (3 * self.e).reciprocal()
        r = self.inverse.reciprocal()
        inner = (1 - self.kept) / self.ahead + self.kept * self.kept * (r - q)
        return ratio, self._where_stopped(free, r * inner, ratio)

    def clip(self, radius: float, with_slope: bool) -> Profile:
        """artan_k(min(tan_k(x), rim)) / x for the rim at distance `radius` / sqrt(-kappa)."""
        clipped = torch.minimum(self.kept, radius * self.beyond.rsqrt())
        if not with_slope:
            return clipped, None
        return clipped, self._where_stopped(self.kept, (1 - self.kept) / self.ahead, clipped)

    def _where_stopped(self, free: Tensor, twice_slope: Tensor, stopped: Tensor) -> Tensor:
        """The derivative of min(free, c / sqrt(-z)), given twice that of `free`."""
        has_stopped = torch.sign(free - stopped)
        return 0.5 * torch.lerp(twice_slope, stopped / self.beyond, has_stopped)


def _reach(dtype: torch.dtype) -> float:
    return 1 - tolerance(dtype).boundary


def _radius(dtype: torch.dtype) -> float:
    return math.atanh(_reach(dtype))


def tangent(z: Tensor, gap: Tensor | None = None) -> Profile:  # noqa: ARG001
    """Factor of expmap0: tan_k(x) / x, in s = sqrt|z| tan(s)/s, 1 at 0, tanh(s)/s for z < 0."""
    return _Tangent(z, *tolerance(z.dtype).tan).ratio(1.0, False)


def tangent_rim(z: Tensor, gap: Tensor | None = None, with_slope: bool = False) -> Profile:  # noqa: ARG001
    """`tangent` stopped at the rim of the ball: expmap0 and project in one factor."""
    return _Tangent(z, *tolerance(z.dtype).tan_rim).ratio(_reach(z.dtype), with_slope)


def clip(z: Tensor, gap: Tensor | None = None) -> Profile:  # noqa: ARG001
    """Factor of logmap0(project(expmap0(v))): 1 but beyond the rim, or the sphere's far side."""
    return _Tangent(z, *tolerance(z.dtype).tan_rim).clip(_radius(z.dtype), False)


def lift(z: Tensor, with_slope: bool) -> tuple[Profile, Profile]:
    """`tangent_rim` and `clip` of the same z."""
    at = _Tangent(z, *tolerance(z.dtype).tan_rim)
    return at.ratio(_reach(z.dtype), with_slope), at.clip(_radius(z.dtype), with_slope)


def _artan(z: Tensor, gap: Tensor | None, halvings: int, levels: int) -> Profile:
    """By halving the angle, z -> z / (1 + sqrt(1 + z))^2, until the fraction converges quickly."""
    if gap is None:
        gap = 1 + z
    gap = gap.clamp(min=tolerance(z.dtype).floor)
    one = z.new_ones(())
    root, halved = gap.sqrt(), z
    sums = []
    for _ in range(halvings):
        sums.append(1 + root)
        halved = halved / (sums[-1] * sums[-1])
        root = (2 * root / sums[-1]).sqrt()
    p2 = 2 / 3 / _fraction(halved, _artan_weights(levels))
    for total in reversed(sums):
        p2 = torch.add(one, p2, alpha=0.5) / total
    return 1 / torch.addcmul(one, z, p2, value=0.5), None


def artan(z: Tensor, gap: Tensor | None = None) -> Profile:
    """Factor of logmap0: artan_k(x) / x, in s = sqrt|z| atan(s)/s, 1 at 0, artanh(s)/s for z < 0.

    `gap` is 1 + z where it is known better than from z: near the rim of the ball it is small.
    """
    return _artan(z, gap, *tolerance(z.dtype).artan)


def artan_projected(z: Tensor, gap: Tensor | None = None) -> Profile:
    """`artan` for points that `project` has seen, at less cost."""
    return _artan(z, gap, *tolerance(z.dtype).artan_projected)


def half_tan(z: Tensor, gap: Tensor | None = None) -> Profile:
    """Half the distance: tan_k(artan_k(x) / 2) / x = 1 / (1 + sqrt(1 + z)), gap = 1 + z."""
    return 1 / (1 + (1 + z if gap is None else gap).sqrt()), None


def rim(z: Tensor, gap: Tensor | None = None, with_slope: bool = False) -> Profile:  # noqa: ARG001
    """Factor that brings a point outside the rim (z < 0) back onto it, 1 for all others."""
    beyond = (-z).clamp(min=_TINY)
    ratio = (_reach(z.dtype) * beyond.rsqrt()).clamp(max=1)
    return ratio, 0.5 * torch.sign(1 - ratio) * ratio / beyond if with_slope else None

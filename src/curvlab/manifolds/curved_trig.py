"""Trigonometric functions of signed curvature, analytic through kappa = 0.

Each function of the family is x times a *ratio*, a function of z = kappa x^2 alone:
tan_k(x) = x tan_ratio(kappa x^2) and so on. A ratio is analytic at z = 0 for any sign of kappa,
so neither x = 0 nor kappa = 0 is special. With z = s^2, of any sign,

    tan(s)/s  = 1 / (1 - z / (3 - z / (5 - z / (7 - ...)))),
    atan(s)/s = 1 / (1 + z / (3 + 4 z / (5 + 9 z / (7 + ...)))).

Nothing is chosen by the sign of z, there is no other formula near 0, and a level costs one
division, which is as cheap as an addition, while tanh, atan and `where` cost five to twenty times
that. The derivatives come without cancellation too: with tan(s)/s = r = 1 / (1 - z q) it is
r (r - q) / 2.

sin_k and its inverse are their power series near zero and elsewhere the closed form, chosen per
element by `where` (with harmless arguments in the branches not taken, so that no infinity enters a
gradient).

A *profile* is the factor along the ray from the origin, and its derivative with respect to z: a
function of z, of 1 + z (as the caller knows it) and of whether the derivative is wanted.

Source: FPS-T (Curve Your Attention), appendix A; Bachmann et al. 2020, constant curvature GCNs;
Lambert's fraction of the tangent and Gauss's of its inverse (Abramowitz and Stegun, 4.3.94 and
4.4.43).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """Thresholds of one floating-point type.

    Attributes:
        boundary: relative width of the rim that `project` keeps free inside the ball. Distances
            grow like the logarithm of the gap to the rim, so a wider rim costs little reach
            (6.2 / sqrt|kappa| in float32, 12.2 in float64) and saves the digits of 1 - |x|^2.
            Half-precision points are computed in float32; rounding them back moves a coordinate
            by at most 2^-9 of itself, which the float32 rim still contains.
        floor: smallest value of 1 + kappa |x|^2 that is divided by, the spacing of the type below
            one: no representable point inside the ball comes closer to the rim.
        series_degree: terms kept of the power series in z = kappa |x|^2 for |z| < `SERIES_RADIUS`;
            the first neglected term is below the rounding error of the type.
        tan: smallest z, and levels there, of the continued fraction of tan_k: beyond, tanh is 1.
        tan_rim: the same when the result is stopped at the rim that `boundary` keeps free.
        artan: halvings of the angle, and levels of the continued fraction after them, of artan_k
            for all points inside the ball (1 + z >= `floor`).
        artan_projected: the same for points that `project` has seen.
    """

    boundary: float
    floor: float
    series_degree: int
    tan: tuple[float, int]
    tan_rim: tuple[float, int]
    artan: tuple[int, int]
    artan_projected: tuple[int, int]


SERIES_RADIUS = 0.05
"""Below this |z| the power series is used. The closed forms of the derivatives lose a factor of
1 / |z| to cancellation, 20 roundings at this radius, and the series needs few terms."""

# The levels are the fewest with which the error of the fraction is below the rounding error.
_TABLE = {
    torch.float32: Tolerance(
        boundary=4e-3,
        floor=2.0**-24,
        series_degree=5,
        tan=(-81.0, 12),
        tan_rim=(-9.8, 7),
        artan=(4, 5),
        artan_projected=(2, 7),
    ),
    torch.float64: Tolerance(
        boundary=1e-5,
        floor=2.0**-53,
        series_degree=11,
        tan=(-360.0, 26),
        tan_rim=(-37.5, 16),
        artan=(6, 8),
        artan_projected=(4, 10),
    ),
}


def tolerance(dtype: torch.dtype) -> Tolerance:
    """Return the thresholds for computing in `dtype` (half precision computes in float32)."""
    return _TABLE[torch.float64 if dtype == torch.float64 else torch.float32]


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


_TERMS = 13


_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(_TERMS))
_ARSIN = tuple(math.comb(2 * n, n) / 4**n / (2 * n + 1) for n in range(_TERMS))

ARSIN_SQUARED = [4.0**n / (2 * n**2 * math.comb(2 * n, n)) for n in range(1, 16)]
"""(asin(s) / s)^2 = sum_n c_n z^n from n = 0: 8 terms are exact in float32 for |z| < 0.1."""


def safe_sqrt(squared: Tensor) -> Tensor:
    """Square root of max(squared, 0) whose gradient there is 0."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def _polynomial(z: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    degree = tolerance(z.dtype).series_degree
    result = z * coefficients[degree] + coefficients[degree - 1]
    for n in range(degree - 2, -1, -1):
        result = result * z + coefficients[n]
    return result


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(n * c for n, c in enumerate(coefficients))[1:]


_ARSIN_SLOPE = _derivative(_ARSIN)


def _blend(
    z: Tensor,
    coefficients: tuple[float, ...],
    hyperbolic: Callable[[Tensor], Tensor],
    spherical: Callable[[Tensor], Tensor],
) -> Tensor:
    """Series for small |z|, hyperbolic(s)/s for z < 0, spherical(s)/s for z > 0, s = sqrt|z|.

    Arguments are clamped to where all three are finite: a `where` costs ten additions.
    """
    magnitude = z.abs()
    s = magnitude.clamp(min=SERIES_RADIUS).sqrt()
    closed = torch.where(z < 0, hyperbolic(s), spherical(s)) / s
    series = _polynomial(z.clamp(-SERIES_RADIUS, SERIES_RADIUS), coefficients)
    return torch.where(magnitude < SERIES_RADIUS, series, closed)


def sin_ratio(z: Tensor) -> Tensor:
    """sin_k(x) / x as a function of z = kappa x^2: sin(s)/s, 1 at 0, sinh(s)/s for z < 0."""
    overflow = math.log(torch.finfo(z.dtype).max)
    return _blend(z, _SIN, lambda s: torch.sinh(s.clamp(max=overflow)), torch.sin)


def cosine(z: Tensor) -> Tensor:
    """cos(sqrt z) = cosh(sqrt(-z)), analytic through z = 0 (by the half angle)."""
    return 1 - z / 2 * sin_ratio(z / 4).square()


def arsin_ratio(z: Tensor, complement: Tensor | None = None) -> Tensor:
    """arsin_k(x) / x as a function of z = kappa x^2: asin(s)/s, 1 at 0, arsinh(s)/s for z < 0.

    `complement` is 1 - z where it is known better than from z: near the antipode it is small.
    """
    adjacent = 1 - z if complement is None else complement
    root = safe_sqrt(adjacent)
    # log1p is several times as fast as asinh.
    return _blend(
        z, _ARSIN, lambda s: torch.log1p(s + s * s / (1 + root)), lambda s: torch.atan2(s, root)
    )


def arsin_slope(z: Tensor, ratio: Tensor) -> Tensor:
    """Derivative of `arsin_ratio`, (1 / sqrt(1 - z) - ratio) / (2 z), near 0 a series."""
    small = z.abs() < SERIES_RADIUS
    series = _polynomial(z.clamp(-SERIES_RADIUS, SERIES_RADIUS), _ARSIN_SLOPE)
    product = (1 - z).clamp(min=tolerance(z.dtype).floor).rsqrt()
    return torch.where(small, series, (product - ratio) / (2 * torch.where(small, 1.0, z)))


def _arguments(x: Tensor, kappa: Tensor | float, sign: int = 1) -> tuple[Tensor, Tensor]:
    """Z = kappa x^2 and 1 + sign z; the sum is taken from z in float64."""
    wide = (kappa.double() if isinstance(kappa, Tensor) else kappa) * x.double().square()
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    return wide.to(dtype), (1 + sign * wide).to(dtype)


def tan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """tan(sqrt(kappa) x) / sqrt(kappa), x at 0, tanh(sqrt(-kappa) x) / sqrt(-kappa) below.

    `x` and `kappa` broadcast elementwise, here and in the three functions below.
    """
    return x * tangent(_arguments(x, kappa)[0])[0].to(x.dtype)


def artan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `tan_k` on its first period: atan (kappa > 0), artanh (kappa < 0)."""
    return x * artan(*_arguments(x, kappa))[0].to(x.dtype)


def sin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """sin(sqrt(kappa) x) / sqrt(kappa), x at 0, sinh(sqrt(-kappa) x) / sqrt(-kappa) below."""
    return x * sin_ratio(_arguments(x, kappa)[0]).to(x.dtype)


def arsin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `sin_k` on its first quarter period: asin (kappa > 0), arsinh (kappa < 0)."""
    return x * arsin_ratio(*_arguments(x, kappa, -1)).to(x.dtype)

"""Trigonometric functions of signed curvature, analytic through kappa = 0.

Each function of the family is x times a *ratio*, a function of z = kappa x^2 alone:
tan_k(x) = x tan_ratio(kappa x^2) and so on. A ratio is analytic at z = 0 for any sign of kappa,
so neither x = 0 nor kappa = 0 is special. With z = s^2, of any sign,

    tan(s)/s  = 1 / (1 - z / (3 - z / (5 - z / (7 - ...)))),
    atan(s)/s = 1 / (1 + z / (3 + 4 z / (5 + 9 z / (7 + ...)))).

The same formula holds for both signs of z and near 0. A fraction with enough levels for the digits
of a type is one quotient of two polynomials.

sin_k and its inverse are power series near zero and closed forms elsewhere, chosen per element by
`where`. Arguments of the unused branch are replaced by harmless ones, so that no infinity enters a
gradient.

Source: FPS-T (Curve Your Attention), appendix A; Bachmann et al. 2020, constant curvature GCNs;
Lambert's fraction of the tangent and Gauss's of its inverse (Abramowitz and Stegun, 4.3.94 and
4.4.43).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """Thresholds of one floating-point type.

    Attributes:
        boundary: Relative width of the rim that `project` keeps free inside the ball. Distances
            grow like the logarithm of the gap to the rim, so that a wider rim reduces the largest
            distance little (6.2 / sqrt|kappa| in float32, 12.2 in float64) and saves digits of
            1 - |x|^2. Half-precision points are computed in float32; rounding changes a coordinate
            by a share of at most 2^-9, for which the float32 rim suffices.
        floor: Smallest divisor 1 + kappa |x|^2, the spacing of the type below one: no representable
            point inside the ball is closer to the rim.
        series_degree: Degree of the power series in z = kappa |x|^2 for |z| < `SERIES_RADIUS`; the
            first omitted term is below the rounding error of the type.
        tan: Smallest z of the continued fraction of tan_k (tanh is 1 below), and its levels.
        tan_rim: Smallest z and levels if the result is stopped at the rim of `boundary`.
        artan: Halvings of the angle, and levels of the continued fraction after them, of artan_k
            for all points inside the ball (1 + z >= `floor`).
        artan_projected: Halvings and levels for projected points.
    """

    boundary: float
    floor: float
    series_degree: int
    tan: tuple[float, int]
    tan_rim: tuple[float, int]
    artan: tuple[int, int]
    artan_projected: tuple[int, int]


SERIES_RADIUS = 0.05
"""Largest |z| of the power series, below which derivatives of closed forms lose 20 roundings."""

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


def polynomial(z: Tensor, coefficients: Sequence[float]) -> Tensor:
    """sum_n c_n z^n, the lowest power first."""
    *lower, before, last = coefficients
    result = (z * last).add_(before)
    for coefficient in reversed(lower):
        result = (result * z).add_(coefficient)
    return result


_BEYOND_POLE = 2.5  # above (pi / 2)^2; after thousands of turns, rounding leads far beyond it
_TINY = 1e-20  # below every z that matters; its square root and cube are float32 numbers


def _convergent(
    levels: int, weight: Callable[[int], Fraction]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """N and w_0 M of 1 / (1 + w_0 z / (1 + w_1 z / (1 + ...))) = N / (N + w_0 z M)."""
    upper = [Fraction(1)]
    rest = [Fraction(1)]
    for n in range(levels - 1, 0, -1):  # 1 + w z M / N
        shifted = [Fraction(0), *(weight(n) * c for c in rest)]
        rest = upper
        upper = [x + y for x, y in zip_longest(upper, shifted, fillvalue=Fraction(0))]
    return tuple(map(float, upper)), tuple(float(weight(0) * c) for c in rest)


_TAN = {
    levels: _convergent(levels, lambda n: Fraction(-1, (2 * n + 1) * (2 * n + 3)))
    for t in _TABLE.values()
    for levels in (t.tan[1], t.tan_rim[1])
}
_ARTAN = {
    levels: _convergent(levels, lambda n: Fraction((n + 1) ** 2, (2 * n + 1) * (2 * n + 3)))
    for t in _TABLE.values()
    for levels in (t.artan[1], t.artan_projected[1])
}


def _before_turns(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(s - turns) / s of s = sqrt(z) and the multiple of pi nearest to it, s, and the turns."""
    s = z.clamp(min=_TINY).sqrt()
    turns = (s.detach() * (1 / math.pi)).round_().mul_(math.pi)
    return 1 - turns / s, s, turns


def _tangent(z: Tensor, lowest: float, levels: int) -> tuple[Tensor, Tensor]:
    """The share of s = sqrt(z) left after whole half turns, and tan(s) / s."""
    share, s, turns = _before_turns(z)
    near = torch.addcmul(z, turns, turns - 2 * s).clamp(lowest, _BEYOND_POLE)
    upper, rest = (polynomial(near, coefficients) for coefficients in _TAN[levels])
    # Between two poles the denominator is positive; rounding at a pole must not divide by 0.
    return share, share * (upper / torch.addcmul(upper, near, rest).clamp(min=1e-7))


def _stopped(ratio: Tensor, length: float, z: Tensor) -> Tensor:
    """The ratio, at most length / s for z < 0."""
    limit = length * (-z).clamp(min=_TINY).rsqrt()
    return torch.where(ratio < limit, ratio, limit)


def _reach(dtype: torch.dtype) -> float:
    return 1 - tolerance(dtype).boundary


def tan_ratio(z: Tensor) -> Tensor:
    """Factor of expmap0: tan_k(x) / x, in s = sqrt|z| tan(s)/s, 1 at 0, tanh(s)/s for z < 0."""
    return _stopped(_tangent(z, *tolerance(z.dtype).tan)[1], 1.0, z)


def tan_and_log_ratio(z: Tensor) -> tuple[Tensor, Tensor]:
    """`tan_rim_ratio(z)` and `log_rim_ratio(z)`."""
    share, ratio = _tangent(z, *tolerance(z.dtype).tan_rim)
    reach = _reach(z.dtype)
    return _stopped(ratio, reach, z), _stopped(share, math.atanh(reach), z)


def tan_rim_ratio(z: Tensor) -> Tensor:
    """`tan_ratio` stopped at the rim of the ball: expmap0 and project in one factor."""
    return _stopped(_tangent(z, *tolerance(z.dtype).tan_rim)[1], _reach(z.dtype), z)


def log_rim_ratio(z: Tensor) -> Tensor:
    """Factor of logmap0(project(expmap0(v))): 1 unless v leads beyond the rim or half a turn."""
    return _stopped(_before_turns(z)[0], math.atanh(_reach(z.dtype)), z)


def artan_ratio(z: Tensor, gap: Tensor | None = None, projected: bool = False) -> Tensor:
    """Factor of logmap0: artan_k(x) / x, in s = sqrt|z| atan(s)/s, 1 at 0, artanh(s)/s for z < 0.

    The angle is halved, z -> z / (1 + sqrt(1 + z))^2, until the fraction converges quickly.

    Args:
        z: Argument kappa x^2.
        gap: Value of 1 + z, if it is known more precisely than from z: near the rim it is small.
        projected: Whether the points lie inside the rim, which requires fewer levels.
    """
    limits = tolerance(z.dtype)
    halvings, levels = limits.artan_projected if projected else limits.artan
    if gap is None:
        gap = 1 + z
    root = gap.clamp(min=limits.floor).sqrt()
    factor = None
    for _ in range(halvings):
        half = (1 + root).reciprocal()
        z = z * half.square()
        root = (2 * root * half).sqrt()
        factor = half if factor is None else factor * half
    upper, rest = _ARTAN[levels]
    n = polynomial(z, upper)
    quotient = n / torch.addcmul(n, z, polynomial(z, rest))
    return quotient if factor is None else 2**halvings * factor * quotient


def at_rim(z: Tensor) -> Tensor:
    """Whether `rim_ratio` stopped a point with z = kappa |x|^2, up to a few roundings."""
    rounding = 4 * torch.finfo(z.dtype).eps
    return z < -((_reach(z.dtype) - rounding) ** 2)


def rim_ratio(z: Tensor) -> Tensor:
    """Factor that brings a point outside the rim (z < 0) back onto it, 1 for all others."""
    return (_reach(z.dtype) * (-z).clamp(min=_TINY).rsqrt()).clamp(max=1)


def single_precision_constants() -> list[float]:
    """Members of `Constants` in `stereographic_maps.cpp`: constants of the ratios in float32."""
    limits = tolerance(torch.float32)
    kind = torch.finfo(torch.float32)
    lowest, levels = limits.tan_rim
    fractions = (*_TAN[levels], *_ARTAN[limits.artan_projected[1]])
    reach = _reach(torch.float32)
    floors = (limits.floor, kind.eps, kind.tiny**0.9, kind.tiny**0.45)
    coefficients = [c for part in fractions for c in part]
    return [*coefficients, lowest, _BEYOND_POLE, reach, math.atanh(reach), *floors]


_TERMS = 13


_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(_TERMS))
_ARSIN = tuple(math.comb(2 * n, n) / 4**n / (2 * n + 1) for n in range(_TERMS))

ARSIN_SQUARED = [4.0**n / (2 * n**2 * math.comb(2 * n, n)) for n in range(1, 16)]
"""Coefficients of (asin(s) / s)^2 = sum_n c_n z^n: 8 are exact in float32 for |z| < 0.1."""


def safe_sqrt(squared: Tensor) -> Tensor:
    """Square root of max(squared, 0), with gradient 0 where that is 0."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def _blend(
    z: Tensor,
    coefficients: tuple[float, ...],
    hyperbolic: Callable[[Tensor], Tensor],
    spherical: Callable[[Tensor], Tensor],
) -> Tensor:
    """Series for small |z|, hyperbolic(s)/s for z < 0, spherical(s)/s for z > 0, s = sqrt|z|.

    Arguments are clamped to the range in which all three are finite.
    """
    magnitude = z.abs()
    s = magnitude.clamp(min=SERIES_RADIUS).sqrt()
    closed = torch.where(z < 0, hyperbolic(s), spherical(s)) / s
    terms = coefficients[: tolerance(z.dtype).series_degree + 1]
    series = polynomial(z.clamp(-SERIES_RADIUS, SERIES_RADIUS), terms)
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

    `complement` is 1 - z, if it is known more precisely than from z: near the antipode it is small.
    """
    if complement is None:
        complement = 1 - z
    root = safe_sqrt(complement)

    def arsinh(s: Tensor) -> Tensor:
        return torch.log1p(s + s * s / (1 + root))  # several times as fast as asinh

    def asin(s: Tensor) -> Tensor:
        return torch.atan2(s, root)

    return _blend(z, _ARSIN, arsinh, asin)


def _arguments(x: Tensor, kappa: Tensor | float, sign: int = 1) -> tuple[Tensor, Tensor]:
    """Z = kappa x^2 and 1 + sign z, computed in float64."""
    if isinstance(kappa, Tensor):
        kappa = kappa.double()
    wide = kappa * x.double().square()
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    return wide.to(dtype), (1 + sign * wide).to(dtype)


def tan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """tan(sqrt(kappa) x) / sqrt(kappa), x at 0, tanh(sqrt(-kappa) x) / sqrt(-kappa) below.

    `x` and `kappa` broadcast elementwise, here and in the three functions below.
    """
    return x * tan_ratio(_arguments(x, kappa)[0]).to(x.dtype)


def artan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `tan_k` on its first period: atan (kappa > 0), artanh (kappa < 0)."""
    return x * artan_ratio(*_arguments(x, kappa)).to(x.dtype)


def sin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """sin(sqrt(kappa) x) / sqrt(kappa), x at 0, sinh(sqrt(-kappa) x) / sqrt(-kappa) below."""
    return x * sin_ratio(_arguments(x, kappa)[0]).to(x.dtype)


def arsin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `sin_k` on its first quarter period: asin (kappa > 0), arsinh (kappa < 0)."""
    return x * arsin_ratio(*_arguments(x, kappa, -1)).to(x.dtype)

"""Trigonometric functions of signed curvature, analytic through kappa = 0.

Each function of the family is x times a *ratio*, a function of z = kappa x^2 alone:
tan_k(x) = x tan_ratio(kappa x^2) and so on. A ratio is analytic at z = 0 whatever the sign of
kappa, so neither x = 0 nor kappa = 0 is special: near zero it is its power series, elsewhere the
closed form, chosen per element by `where` (with harmless arguments in the branches not taken, so
that no infinity enters a gradient). `*_slope` is the derivative of a ratio with respect to z.

Source: FPS-T (Curve Your Attention), appendix A; Bachmann et al. 2020, constant curvature GCNs.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import torch
from torch import Tensor

from curvlab.manifolds.tolerances import SERIES_RADIUS, tolerance

_TERMS = 13


def _tan_series() -> list[Fraction]:
    """Coefficients of tan(s)/s in s^2, from the equation 2 z T' = 1 + z T^2 - T."""
    series = [Fraction(1)]
    for n in range(1, _TERMS):
        convolution = sum((series[i] * series[n - 1 - i] for i in range(n)), start=Fraction(0))
        series.append(convolution / (2 * n + 1))
    return series


_TAN = tuple(float(c) for c in _tan_series())
_ARTAN = tuple((-1) ** n / (2 * n + 1) for n in range(_TERMS))
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(_TERMS))
_ARSIN = tuple(math.comb(2 * n, n) / 4**n / (2 * n + 1) for n in range(_TERMS))


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


_TAN_SLOPE, _ARTAN_SLOPE, _SIN_SLOPE, _ARSIN_SLOPE = map(_derivative, (_TAN, _ARTAN, _SIN, _ARSIN))


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


def _slope(z: Tensor, coefficients: tuple[float, ...], ratio: Tensor, product: Tensor) -> Tensor:
    """Derivative of a ratio, from d(s ratio)/ds = product, that is (product - ratio) / (2 z)."""
    small = z.abs() < SERIES_RADIUS
    series = _polynomial(z.clamp(-SERIES_RADIUS, SERIES_RADIUS), coefficients)
    return torch.where(small, series, (product - ratio) / (2 * torch.where(small, 1.0, z)))


def tan_ratio(z: Tensor) -> Tensor:
    """tan_k(x) / x as a function of z = kappa x^2: tan(s)/s, 1 at 0, tanh(s)/s for z < 0."""
    return _blend(z, _TAN, torch.tanh, torch.tan)


def tan_slope(z: Tensor) -> Tensor:
    """Derivative of `tan_ratio`."""
    ratio = tan_ratio(z)
    return _slope(z, _TAN_SLOPE, ratio, 1 + z * ratio.square())


def artan_ratio(z: Tensor, gap: Tensor | None = None) -> Tensor:
    """artan_k(x) / x as a function of z = kappa x^2: atan(s)/s, 1 at 0, artanh(s)/s for z < 0.

    `gap` is 1 + z where it is known better than from z: near the rim of the ball it is small.
    """
    rim = (1 + z if gap is None else gap).clamp(min=tolerance(z.dtype).floor)
    root = torch.where(z < 0, rim, 1.0).sqrt()
    return _blend(z, _ARTAN, lambda s: torch.log((1 + s) / root), torch.atan)


def artan_slope(z: Tensor, gap: Tensor | None = None) -> Tensor:
    """Derivative of `artan_ratio`."""
    rim = (1 + z if gap is None else gap).clamp(min=tolerance(z.dtype).floor)
    return _slope(z, _ARTAN_SLOPE, artan_ratio(z, gap), rim.reciprocal())


def sin_ratio(z: Tensor) -> Tensor:
    """sin_k(x) / x as a function of z = kappa x^2: sin(s)/s, 1 at 0, sinh(s)/s for z < 0."""
    overflow = math.log(torch.finfo(z.dtype).max)
    return _blend(z, _SIN, lambda s: torch.sinh(s.clamp(max=overflow)), torch.sin)


def sin_slope(z: Tensor) -> Tensor:
    """Derivative of `sin_ratio`."""
    return _slope(z, _SIN_SLOPE, sin_ratio(z), cosine(z))


def cosine(z: Tensor) -> Tensor:
    """cos(sqrt z) = cosh(sqrt(-z)), analytic through z = 0 (by the half angle)."""
    return 1 - z / 2 * sin_ratio(z / 4).square()


def arsin_ratio(z: Tensor, complement: Tensor | None = None) -> Tensor:
    """arsin_k(x) / x as a function of z = kappa x^2: asin(s)/s, 1 at 0, arsinh(s)/s for z < 0.

    `complement` is 1 - z where it is known better than from z: near the antipode it is small.
    """
    adjacent = 1 - z if complement is None else complement
    root = safe_sqrt(torch.where(z > 0, adjacent, 1.0))
    return _blend(z, _ARSIN, torch.asinh, lambda s: torch.atan2(s, root))


def arsin_slope(z: Tensor, ratio: Tensor | None = None) -> Tensor:
    """Derivative of `arsin_ratio`, from the ratio if it is known."""
    ratio = arsin_ratio(z) if ratio is None else ratio
    return _slope(z, _ARSIN_SLOPE, ratio, (1 - z).clamp(min=tolerance(z.dtype).floor).rsqrt())


def half_tan_ratio(z: Tensor, gap: Tensor) -> Tensor:  # noqa: ARG001
    """tan_k(artan_k(x) / 2) / x = 1 / (1 + sqrt(1 + z)), gap = 1 + z."""
    return 1 / (1 + gap.sqrt())


def half_tan_slope(z: Tensor, gap: Tensor) -> Tensor:  # noqa: ARG001
    """Derivative of `half_tan_ratio`."""
    root = gap.sqrt()
    return -0.5 / (root * (1 + root).square())


def rim_ratio(z: Tensor) -> Tensor:
    """Factor that brings a point outside the rim (z < 0) back onto it, 1 for all others."""
    reach = 1 - tolerance(z.dtype).boundary
    stopped = reach * (-z).clamp(min=reach**2).rsqrt()
    return torch.where(-z > reach**2, stopped, 1.0)


def rim_slope(z: Tensor) -> Tensor:
    """Derivative of `rim_ratio`."""
    reach = 1 - tolerance(z.dtype).boundary
    stopped = 0.5 * reach * (-z).clamp(min=reach**2).pow(-1.5)
    return torch.where(-z > reach**2, stopped, 0.0)


def tan_rim_ratio(z: Tensor) -> Tensor:
    """`tan_ratio` stopped at the rim of the ball: expmap0 and project in one factor."""
    ratio = tan_ratio(z)
    reach = 1 - tolerance(z.dtype).boundary
    stopped = reach * (-z).clamp(min=reach**2).rsqrt()
    return torch.where(-z * ratio.square() > reach**2, stopped, ratio)


def tan_rim_slope(z: Tensor) -> Tensor:
    """Derivative of `tan_rim_ratio`."""
    ratio = tan_ratio(z)
    reach = 1 - tolerance(z.dtype).boundary
    stopped = 0.5 * reach * (-z).clamp(min=reach**2).pow(-1.5)
    inner = _slope(z, _TAN_SLOPE, ratio, 1 + z * ratio.square())
    return torch.where(-z * ratio.square() > reach**2, stopped, inner)


def _arguments(x: Tensor, kappa: Tensor | float, sign: int = 1) -> tuple[Tensor, Tensor]:
    """Z = kappa x^2 and 1 + sign z, the latter taken from z in float64."""
    wide = (kappa.double() if isinstance(kappa, Tensor) else kappa) * x.double().square()
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

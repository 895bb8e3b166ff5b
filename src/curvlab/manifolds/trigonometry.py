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
    """Series for small |z|, hyperbolic(s)/s for z < 0, spherical(s)/s for z > 0, s = sqrt|z|."""
    small = z.abs() < SERIES_RADIUS
    negative = z < 0
    s = torch.where(small, SERIES_RADIUS, z.abs()).sqrt()
    below = hyperbolic(torch.where(negative, s, SERIES_RADIUS))
    above = spherical(torch.where(negative, SERIES_RADIUS, s))
    series = _polynomial(torch.where(small, z, 0.0), coefficients)
    return torch.where(small, series, torch.where(negative, below, above) / s)


def _slope(z: Tensor, coefficients: tuple[float, ...], ratio: Tensor, product: Tensor) -> Tensor:
    """Derivative of a ratio, from d(s ratio)/ds = product, that is (product - ratio) / (2 z)."""
    small = z.abs() < SERIES_RADIUS
    series = _polynomial(torch.where(small, z, 0.0), coefficients)
    return torch.where(small, series, (product - ratio) / (2 * torch.where(small, 1.0, z)))


def _artanh(s: Tensor) -> Tensor:
    return torch.atanh(s.clamp(max=1 - tolerance(s.dtype).floor))


def _asin(s: Tensor) -> Tensor:
    inside = s < 1
    return torch.where(inside, torch.asin(torch.where(inside, s, 0.0)), math.pi / 2)


def tan_ratio(z: Tensor) -> Tensor:
    """tan_k(x) / x as a function of z = kappa x^2: tan(s)/s, 1 at 0, tanh(s)/s for z < 0."""
    return _blend(z, _TAN, torch.tanh, torch.tan)


def tan_slope(z: Tensor) -> Tensor:
    """Derivative of `tan_ratio`."""
    ratio = tan_ratio(z)
    return _slope(z, _TAN_SLOPE, ratio, 1 + z * ratio.square())


def artan_ratio(z: Tensor) -> Tensor:
    """artan_k(x) / x as a function of z = kappa x^2: atan(s)/s, 1 at 0, artanh(s)/s for z < 0."""
    return _blend(z, _ARTAN, _artanh, torch.atan)


def artan_slope(z: Tensor) -> Tensor:
    """Derivative of `artan_ratio`."""
    gap = (1 + z).clamp(min=tolerance(z.dtype).floor)
    return _slope(z, _ARTAN_SLOPE, artan_ratio(z), gap.reciprocal())


def sin_ratio(z: Tensor) -> Tensor:
    """sin_k(x) / x as a function of z = kappa x^2: sin(s)/s, 1 at 0, sinh(s)/s for z < 0."""
    return _blend(z, _SIN, torch.sinh, torch.sin)


def sin_slope(z: Tensor) -> Tensor:
    """Derivative of `sin_ratio`."""
    return _slope(z, _SIN_SLOPE, sin_ratio(z), cosine(z))


def cosine(z: Tensor) -> Tensor:
    """cos(sqrt z) = cosh(sqrt(-z)), analytic through z = 0 (by the half angle)."""
    return 1 - z / 2 * sin_ratio(z / 4).square()


def arsin_ratio(z: Tensor) -> Tensor:
    """arsin_k(x) / x as a function of z = kappa x^2: asin(s)/s, 1 at 0, arsinh(s)/s for z < 0."""
    return _blend(z, _ARSIN, torch.asinh, _asin)


def arsin_ratio_with_complement(z: Tensor, complement: Tensor) -> Tensor:
    """`arsin_ratio` where 1 - z is known better than z itself: exact up to z = 1."""
    small = z.abs() < SERIES_RADIUS
    s = torch.where(small, SERIES_RADIUS, z.abs()).sqrt()
    angle = torch.where(z < 0, torch.asinh(s), torch.atan2(s, complement.sqrt()))
    return torch.where(small, _polynomial(torch.where(small, z, 0.0), _ARSIN), angle / s)


def arsin_slope_from(z: Tensor, ratio: Tensor, inverse_root: Tensor) -> Tensor:
    """`arsin_slope` from the ratio itself and 1 / sqrt(1 - z)."""
    return _slope(z, _ARSIN_SLOPE, ratio, inverse_root)


def arsin_slope(z: Tensor) -> Tensor:
    """Derivative of `arsin_ratio`."""
    gap = (1 - z).clamp(min=tolerance(z.dtype).floor)
    return arsin_slope_from(z, arsin_ratio(z), gap.rsqrt())


def half_tan_ratio(z: Tensor) -> Tensor:
    """tan_k(artan_k(x) / 2) / x = 1 / (1 + sqrt(1 + z)), the half of a point's distance to 0."""
    return 1 / (1 + (1 + z).clamp(min=tolerance(z.dtype).floor).sqrt())


def half_tan_slope(z: Tensor) -> Tensor:
    """Derivative of `half_tan_ratio`."""
    root = (1 + z).clamp(min=tolerance(z.dtype).floor).sqrt()
    return -0.5 / (root * (1 + root).square())


def rim_ratio(z: Tensor) -> Tensor:
    """Factor that brings a point outside the rim (z < 0) back onto it, 1 for all others."""
    reach = 1 - tolerance(z.dtype).boundary
    outside = -z > reach**2
    return torch.where(outside, reach * torch.where(outside, -z, 1.0).rsqrt(), 1.0)


def rim_slope(z: Tensor) -> Tensor:
    """Derivative of `rim_ratio`."""
    reach = 1 - tolerance(z.dtype).boundary
    outside = -z > reach**2
    return torch.where(outside, 0.5 * reach * torch.where(outside, -z, 1.0).pow(-1.5), 0.0)


def tan_rim_ratio(z: Tensor) -> Tensor:
    """`tan_ratio` stopped at the rim of the ball: expmap0 and project in one factor."""
    ratio = tan_ratio(z)
    reach = 1 - tolerance(z.dtype).boundary
    outside = -z * ratio.square() > reach**2
    return torch.where(outside, reach * torch.where(outside, -z, 1.0).rsqrt(), ratio)


def tan_rim_slope(z: Tensor) -> Tensor:
    """Derivative of `tan_rim_ratio`."""
    ratio = tan_ratio(z)
    reach = 1 - tolerance(z.dtype).boundary
    outside = -z * ratio.square() > reach**2
    stopped = 0.5 * reach * torch.where(outside, -z, 1.0).pow(-1.5)
    inner = _slope(z, _TAN_SLOPE, ratio, 1 + z * ratio.square())
    return torch.where(outside, stopped, inner)


def _argument(x: Tensor, kappa: Tensor | float) -> Tensor:
    z = kappa * x.square()
    return z if z.dtype in (torch.float32, torch.float64) else z.float()


def tan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """tan(sqrt(kappa) x) / sqrt(kappa), x at 0, tanh(sqrt(-kappa) x) / sqrt(-kappa) below.

    `x` and `kappa` broadcast elementwise, here and in the three functions below.
    """
    return x * tan_ratio(_argument(x, kappa)).to(x.dtype)


def artan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `tan_k` on its first period: atan (kappa > 0), artanh (kappa < 0)."""
    return x * artan_ratio(_argument(x, kappa)).to(x.dtype)


def sin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """sin(sqrt(kappa) x) / sqrt(kappa), x at 0, sinh(sqrt(-kappa) x) / sqrt(-kappa) below."""
    return x * sin_ratio(_argument(x, kappa)).to(x.dtype)


def arsin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `sin_k` on its first quarter period: asin (kappa > 0), arsinh (kappa < 0)."""
    return x * arsin_ratio(_argument(x, kappa)).to(x.dtype)

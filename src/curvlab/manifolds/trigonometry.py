"""Trigonometric functions of signed curvature, analytic through kappa = 0.

Each function of the family is x times a *ratio*, a function of z = kappa x^2 alone:
tan_k(x) = x tan_ratio(kappa x^2) and so on. A ratio is analytic at z = 0 for any sign of
kappa, so neither x = 0 nor kappa = 0 is special: near zero it is its power series, elsewhere the
closed form, chosen per element by `where` (with harmless arguments in the branches not taken, so
that no infinity enters a gradient). `*_slope` is the derivative of a ratio with respect to z.

Source: FPS-T (Curve Your Attention), appendix A; Bachmann et al. 2020, constant curvature GCNs.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from curvlab.manifolds import tangents
from curvlab.manifolds.tolerances import SERIES_RADIUS, tolerance

_TERMS = 13


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
    return x * tangents.tangent(_arguments(x, kappa)[0])[0].to(x.dtype)


def artan_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `tan_k` on its first period: atan (kappa > 0), artanh (kappa < 0)."""
    return x * tangents.artan(*_arguments(x, kappa))[0].to(x.dtype)


def sin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """sin(sqrt(kappa) x) / sqrt(kappa), x at 0, sinh(sqrt(-kappa) x) / sqrt(-kappa) below."""
    return x * sin_ratio(_arguments(x, kappa)[0]).to(x.dtype)


def arsin_k(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `sin_k` on its first quarter period: asin (kappa > 0), arsinh (kappa < 0)."""
    return x * arsin_ratio(*_arguments(x, kappa, -1)).to(x.dtype)

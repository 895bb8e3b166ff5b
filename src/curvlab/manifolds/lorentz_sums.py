r"""Sums of two points of the Lorentz model, kappa < 0, for residual connections.

All functions take points `[..., 1 + dim]` (time first), a curvature and weights w_x, w_y > 0,
which broadcast against the leading dimensions, and return points `[..., 1 + dim]`. With
s = sqrt(-kappa):

    centroid             (w_x x + w_y y) / (s sqrt(-<., .>_L)), between x and y,
    parallel_transport   exp_x(P_{o -> x}(log_o y)), which has no weights,
    tangent_space        exp_o(w_x log_o x + w_y log_o y),
    space_addition       the point with the space part w_x x_s + w_y y_s.

The functions are closed forms that keep their digits. `LITERAL` has the first three as written:
compositions of maps between points and tangent vectors of 1 + dim coordinates, in the type of the
points. Their products <x, y>_L cancel: in float32 the results leave the hyperboloid at a distance
of about 9 / s, and are NaN beyond it.

Source: LRN (He et al. 2024), Section 3 and Equation 12. The norm of the centroid is of -<., .>_L
(<., .>_L in the paper). Parallel transport is a boost, as in any text on relativity.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from curvlab.manifolds import lorentz
from curvlab.manifolds.kernels import negative_curvature, prepend_time, squared_norm, upcast_half

Weight = Tensor | float
Sum = Callable[[Tensor, Tensor, Tensor | float, Weight, Weight], Tensor]


def centroid(
    x: Tensor, y: Tensor, kappa: Tensor | float, weight_x: Weight = 1.0, weight_y: Weight = 1.0
) -> Tensor:
    """Weighted centroid; only the ratio of the weights matters."""
    return lorentz.midpoint(x, y, kappa, weight_y / (weight_x + weight_y))


def parallel_transport(x: Tensor, y: Tensor, kappa: Tensor | float, *_weights: Weight) -> Tensor:
    """The boost that moves the origin to x, applied to y, without weights; x + 0 = x, 0 + y = y.

    The space part is y_s + (s y_t - kappa <x_s, y_s> / (1 + s x_t)) x_s. The two terms in brackets
    are as large as the times and cancel where y points away from x. With h = 1 + s t and the sum of
    stereographic images c = x_s / h_x + y_s / h_y, the bracket is h_y / h_x - kappa h_y |c|^2 / 2.
    """
    p = upcast_half(lorentz.space(x))
    q = upcast_half(lorentz.space(y))
    k = negative_curvature(kappa, p.dtype, p)
    h_p = 1 + (1 - k * squared_norm(p)).sqrt()
    h_q = 1 + (1 - k * squared_norm(q)).sqrt()
    c = torch.addcmul(q / h_q, p, 1 / h_p)
    along = h_q / h_p - k / 2 * h_q * squared_norm(c)
    return prepend_time(torch.addcmul(q, along, p), k).to(x.dtype)


def tangent_space(
    x: Tensor, y: Tensor, kappa: Tensor | float, weight_x: Weight = 1.0, weight_y: Weight = 1.0
) -> Tensor:
    """Weighted sum of the logarithms at the origin."""
    u = lorentz.logmap0(x, kappa)
    v = lorentz.logmap0(y, kappa)
    return lorentz.expmap0(_columns(weight_x) * u + _columns(weight_y) * v, kappa)


def space_addition(
    x: Tensor, y: Tensor, kappa: Tensor | float, weight_x: Weight = 1.0, weight_y: Weight = 1.0
) -> Tensor:
    """Weighted sum of the space parts."""
    p = lorentz.space(x)
    q = lorentz.space(y)
    return lorentz.from_space(_columns(weight_x) * p + _columns(weight_y) * q, kappa)


def _columns(weight: Weight) -> Weight:
    return weight.unsqueeze(-1) if isinstance(weight, Tensor) else weight


def _literal_centroid(x: Tensor, y: Tensor, kappa: Tensor | float, *weights: Weight) -> Tensor:
    v = _columns(weights[0]) * x + _columns(weights[1]) * y
    return v / _root(kappa) / lorentz.inner(v, v).neg().sqrt().unsqueeze(-1)


def _literal_parallel_transport(
    x: Tensor, y: Tensor, kappa: Tensor | float, *_weights: Weight
) -> Tensor:
    o = _origin_like(x, kappa)
    u = _log(o, y, kappa)
    push = lorentz.inner(x, u) / (-1 / kappa - lorentz.inner(o, x))
    return _exp(x, u + push.unsqueeze(-1) * (o + x), kappa)


def _literal_tangent_space(x: Tensor, y: Tensor, kappa: Tensor | float, *weights: Weight) -> Tensor:
    o = _origin_like(x, kappa)
    u = _log(o, x, kappa)
    v = _log(o, y, kappa)
    return _exp(o, _columns(weights[0]) * u + _columns(weights[1]) * v, kappa)


def _root(kappa: Tensor | float) -> Weight:
    return _columns((-kappa).sqrt()) if isinstance(kappa, Tensor) else (-kappa) ** 0.5


def _origin_like(x: Tensor, kappa: Tensor | float) -> Tensor:
    k = kappa if isinstance(kappa, Tensor) else x.new_full((), kappa)
    return lorentz.origin(x.shape[-1] - 1, k).to(x.dtype)


def _log(x: Tensor, y: Tensor, kappa: Tensor | float) -> Tensor:
    """arcosh(b) / sqrt(b^2 - 1) (y - b x), b = kappa <x, y>_L, kept above 1 by one rounding."""
    b = (kappa * lorentz.inner(x, y)).clamp(min=1 + torch.finfo(x.dtype).eps).unsqueeze(-1)
    return b.acosh() * (b.square() - 1).rsqrt() * (y - b * x)


def _exp(x: Tensor, v: Tensor, kappa: Tensor | float) -> Tensor:
    """cosh(a) x + sinh(a) / a v, a = s sqrt(<v, v>_L), kept above 0."""
    norm = lorentz.inner(v, v).clamp(min=torch.finfo(x.dtype).eps ** 2).sqrt().unsqueeze(-1)
    a = _root(kappa) * norm
    return a.cosh() * x + a.sinh() / a * v


STABLE: Mapping[str, Sum] = MappingProxyType(
    {f.__name__: f for f in (centroid, parallel_transport, tangent_space, space_addition)}
)
"""The sums by their names."""

LITERAL: Mapping[str, Sum] = MappingProxyType(
    {
        **STABLE,
        "centroid": _literal_centroid,
        "parallel_transport": _literal_parallel_transport,
        "tangent_space": _literal_tangent_space,
    }
)
"""The sums as compositions of maps, by their names."""

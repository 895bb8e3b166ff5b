"""A step of Adam for points of a manifold: a move along a geodesic, and the momentum with it.

`points`, their gradients and the momenta are `[points, coordinates]`. The direction of a move is a
multiple of the momentum m at each point, so that the transport of m along that move is the
derivative of the geodesic: both follow from a few products of x and m, without logarithms,
gyrations, or a second look at the end point.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.kernels import dot, squared_norm

SMALLEST_ANGLE = 1e-12
"""Below which sinh(angle) / angle is 1 in every type."""


class Rates(NamedTuple):
    """Learning rate, decay rates and count of a step."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    step: int

    def lengths(self, second: Tensor) -> Tensor:
        first_correction = 1 - self.beta1**self.step
        second_correction = 1 - self.beta2**self.step
        denominator = (second / second_correction).sqrt_().add_(self.eps)
        return -self.lr / (first_correction * denominator)


def lorentz_step(
    x: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    kappa: Tensor,
    rates: Rates,
) -> None:
    """Step on a hyperboloid; v is `[points, 1]`.

    With u = c m: y_s = cos_k(|u|) x_s + sin_k(|u|) / |u| c m_s and m <- cos_k(|u|) m - kappa
    sin_k(|u|) / |u| c |m|^2 x. Times are taken from the space parts.
    """
    if rates.weight_decay:
        g = g + rates.weight_decay * x
    time, m_time = x[:, :1], m[:, :1]
    # The gradient of the metric has the other sign of time, then it is made tangent.
    r = torch.addcmul(g, -kappa * dot(x, g), x)
    r[:, :1] -= 2 * g[:, :1]
    v.mul_(rates.beta2).add_(_lorentz_square(r), alpha=1 - rates.beta2)
    m.lerp_(r, 1 - rates.beta1)
    c = rates.lengths(v)
    m2 = _lorentz_square(m)
    angle = (-kappa * m2).sqrt_().mul_(c.abs()).clamp_(min=SMALLEST_ANGLE)
    cos, sin = angle.cosh(), angle.sinh().div_(angle).mul_(c)
    momentum = (m * cos).addcmul_(-kappa * sin * m2, x)
    x.mul_(cos).addcmul_(sin, m)
    m.copy_(momentum)
    # Of the space parts alone; what x and m have for times is right but for rounding.
    space_product = dot(x, m) - time * m_time
    torch.sqrt(squared_norm(x) - time.square() - 1 / kappa, out=time)
    torch.div(space_product, time, out=m_time)


def _lorentz_square(u: Tensor) -> Tensor:
    """<u, u>_L of tangent vectors `[points, 1 + dim]`, which is not negative, `[points, 1]`."""
    return squared_norm(u).sub_(u[:, :1].square(), alpha=2).clamp_(min=0)


def any_step(
    manifold: geoopt.Manifold,
    x: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    rates: Rates,
) -> None:
    """Step on any manifold of geoopt's, by its methods; v is `[points, coordinates]`."""
    if rates.weight_decay:
        g = g + rates.weight_decay * x
    r = manifold.egrad2rgrad(x, g)
    m.lerp_(r, 1 - rates.beta1)
    v.mul_(rates.beta2).add_(manifold.component_inner(x, r), alpha=1 - rates.beta2)
    moved, momentum = manifold.retr_transp(x, rates.lengths(v) * m, m)
    x.copy_(moved)
    m.copy_(momentum)

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
from curvlab.manifolds.curved_trig import tan_ratio, tolerance
from curvlab.manifolds.kernels import dot, squared_norm

SMALLEST_ANGLE = 1e-12
"""Below which sinh(angle) / angle is 1 in every type."""


class Rates(NamedTuple):
    """What a step is computed with."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    step: int

    def lengths(self, second: Tensor, largest: Tensor | None) -> Tensor:
        """What the first moment is multiplied by, from the second moment.

        With AMSGrad from the largest second moment so far, which is updated in place.
        """
        if largest is not None:
            second = torch.maximum(largest, second, out=largest)
        first_correction = 1 - self.beta1**self.step
        second_correction = 1 - self.beta2**self.step
        denominator = (second / second_correction).sqrt_().add_(self.eps)
        return -self.lr / (first_correction * denominator)


def lorentz_step(
    x: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    largest: Tensor | None,
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
    c = rates.lengths(v, largest)
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


def stereographic_step(
    x: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    largest: Tensor | None,
    kappa: Tensor,
    rates: Rates,
) -> None:
    r"""Step on a product of stereographic spaces.

    x, g and m are `[points, components, block]`, v is `[points, components, 1]`, kappa
    `[components, 1]`. In a component, with B = 1 + kappa |x|^2, u = c m, w = tau m where
    tau = tan_k(c |m| / B) / |m|,

        y = x (+) w = (A x + B w) / D,   A = 1 - 2 kappa <x, w> - kappa |w|^2,
        D = 1 - 2 kappa <x, w> + kappa^2 |x|^2 |w|^2,

    and m becomes the derivative of y along m, (1 + kappa |w|^2) / B times that by w. Points beyond
    the rim of the ball are moved back onto it.
    """
    if rates.weight_decay:
        g = g + rates.weight_decay * x
    x2 = squared_norm(x)
    B = 1 + kappa * x2
    inverse = B.square() / 4  # of the metric
    v.mul_(rates.beta2).add_(squared_norm(g) * inverse, alpha=1 - rates.beta2)
    m.mul_(rates.beta1).addcmul_(g, inverse, value=1 - rates.beta1)
    c = rates.lengths(v, largest)
    m2, xm = squared_norm(m), dot(x, m)
    half = c / B
    tau = half * tan_ratio(kappa * half.square() * m2)
    curved, xw = kappa * tau.square() * m2, kappa * tau * xm
    inside = 1 - 2 * xw
    A, D = inside - curved, torch.addcmul(inside, kappa * x2, curved)
    slope = 2 * kappa * (kappa * x2 * tau * m2 - xm)  # of D
    scale = (1 + curved) / (B * D.square())
    along_x = -2 * kappa * (xm + tau * m2) * D - A * slope
    momentum = (m * (scale * B * (D - tau * slope))).addcmul_(scale * along_x, x)
    # -kappa |y|^2, since 1 + kappa |y|^2 = B (1 + kappa |w|^2) / D.
    rim = (1 - tolerance(x.dtype).boundary) ** 2
    kept = (rim / (1 - B * (1 + curved) / D).clamp_(min=rim)).sqrt_() / D
    x.mul_(A * kept).addcmul_(B * tau * kept, m)
    m.copy_(momentum)


def any_step(
    manifold: geoopt.Manifold,
    x: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    largest: Tensor | None,
    rates: Rates,
) -> None:
    """Step on any manifold of geoopt's, by its methods; v is `[points, coordinates]`."""
    if rates.weight_decay:
        g = g + rates.weight_decay * x
    r = manifold.egrad2rgrad(x, g)
    m.lerp_(r, 1 - rates.beta1)
    v.mul_(rates.beta2).add_(manifold.component_inner(x, r), alpha=1 - rates.beta2)
    moved, momentum = manifold.retr_transp(x, rates.lengths(v, largest) * m, m)
    x.copy_(moved)
    m.copy_(momentum)

"""Differentiable kernels of the Lorentz model: few passes over the points, exact derivatives.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`. Time is a function of the
space part s, so a derivative by a point is one by s: g_s + g_t s / t, in one pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds.kernels import dot, squared_norm


def split_time(x: Tensor) -> tuple[Tensor, Tensor]:
    """Time `[..., 1]` and space part `[..., dim]` of `[..., 1 + dim]`, in one operation.

    Its derivative is one concatenation; that of each slice is an array of zeros to be added.
    """
    return x.split([1, x.shape[-1] - 1], -1)


def time_of(s: Tensor, kappa: Tensor) -> Tensor:
    """The time sqrt(|s|^2 - 1 / kappa) of space parts `[..., dim]`, `[..., 1]`."""
    return (squared_norm(s) - 1 / kappa).sqrt()


def lifted_gradient(g: Tensor, point: Tensor) -> Tensor:
    """Derivative by the space part, from that by the point `[..., 1 + dim]` lifted from it."""
    return torch.addcmul(g[..., 1:], point[..., 1:], g[..., :1] / point[..., :1])


def lifted_gradient_by_curvature(g: Tensor, point: Tensor, kappa: Tensor) -> Tensor:
    """Derivative by kappa of the time of points lifted from given space parts, `[..., 1]`."""
    return g[..., :1] / (2 * point[..., :1] * kappa.square())


class _Lift(Function):
    """Space parts `[..., dim]` with their time before them, `[..., 1 + dim]`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, kappa: Tensor) -> Tensor:
        return torch.cat([time_of(s, kappa), s], -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output, inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        point, kappa = ctx.saved_tensors
        g_kappa = None
        if ctx.needs_input_grad[1]:
            g_kappa = lifted_gradient_by_curvature(g, point, kappa).sum_to_size(kappa.shape)
        return lifted_gradient(g, point), g_kappa


def lift(s: Tensor, kappa: Tensor) -> Tensor:
    """Prepend the time sqrt(|s|^2 - 1 / kappa) to space parts whose shape kappa fits."""
    return _Lift.apply(s, kappa)


class _Midpoint(Function):
    r"""The normalised sum m of a x and b y, a + b = 1, as a space part.

    With tau = sqrt(-kappa) t and h = 1 + tau, the half-angle form of `curvlab.manifolds.lorentz`,
    u^2 = |e - y (h_x - h_y) / h_y|^2 h_y / (4 h_x) for e = x - y, has nothing that cancels, and

        kappa <s, s>_L = n = 1 - 4 a b kappa u^2,    m = s / sqrt(n),    s = a x + b y.

    Its derivatives: d(u^2) = (e - x (h_x - h_y) / tau_x) dx / 2 for fixed y, the same with x and y
    swapped for fixed x.
    """

    generate_vmap_rule = True

    @staticmethod
    def _scalars(x: Tensor, y: Tensor, kappa: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        """e, tau_x, tau_y, h_x - h_y, -kappa u^2 and n."""
        tau_x, tau_y = ((1 - kappa * squared_norm(s)).sqrt() for s in (x, y))
        e = x - y
        gap = -kappa * dot(e, x + y) / (tau_x + tau_y)
        chord = squared_norm(torch.addcmul(e, y, -gap / (1 + tau_y)))
        spread = -kappa * chord * (1 + tau_y) / (4 * (1 + tau_x))
        n = 1 + 4 * weight * (1 - weight) * spread
        return e, tau_x, tau_y, gap, spread, n

    @staticmethod
    def forward(x: Tensor, y: Tensor, kappa: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        e, *small = _Midpoint._scalars(x, y, kappa, weight)
        m = e.mul_(-weight).add_(x).mul_(small[-1].rsqrt())
        return m, *small

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs, *output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, y, kappa, weight, m, *small = ctx.saved_tensors
        if torch.is_grad_enabled():
            e, *small = _Midpoint._scalars(x, y, kappa, weight)
        else:
            e = x - y
        tau_x, tau_y, gap, spread, n = small
        pull, ab = dot(g, m) / n, weight * (1 - weight)
        along = ab * kappa * pull
        g_s, g_e = g * n.rsqrt(), e * along
        g_x = torch.addcmul(g_s * (1 - weight) + g_e, x, -along * gap / tau_x)
        g_y = torch.addcmul(g_s * weight - g_e, y, along * gap / tau_y)
        g_kappa = g_weight = None
        if ctx.needs_input_grad[2]:
            radial = squared_norm(x) / tau_x - squared_norm(y) / tau_y
            g_kappa = (-pull / 2 * ab * (gap * radial - squared_norm(e))).sum_to_size(kappa.shape)
        if ctx.needs_input_grad[3]:
            by_weight = -dot(g_s, e) - 2 * pull * spread * (1 - 2 * weight)
            g_weight = by_weight.sum_to_size(weight.shape)
        return g_x, g_y, g_kappa, g_weight


def midpoint(x: Tensor, y: Tensor, kappa: Tensor, weight: Tensor) -> Tensor:
    """Space part of the weighted midpoint of points with space parts x and y, `[..., dim]`."""
    return _Midpoint.apply(x, y, kappa, weight)[0]


def midpoint_without_derivative(x: Tensor, y: Tensor, kappa: Tensor, weight: Tensor) -> Tensor:
    """`lift(midpoint(...), kappa)` of points x and y themselves, `[..., 1 + dim]`.

    As `_Midpoint` with half the passes over the points: <e, x + y> is 2 <e, x> - |e|^2, which loses
    no more digits, and the times are summed like the space parts.
    """
    p, q = x[..., 1:], y[..., 1:]
    tau_x, tau_y = ((1 - kappa * squared_norm(s)).sqrt_() for s in (p, q))
    e = p - q
    gap = (squared_norm(e) - 2 * dot(e, p)).mul_(kappa / (tau_x + tau_y))
    chord = squared_norm(e.addcmul_(q, gap / (1 + tau_y), value=-1))
    ab = weight * (1 - weight)
    n = 1 - kappa * ab * chord * ((1 + tau_y) / (1 + tau_x))
    scale = n.rsqrt_()
    return (x * ((1 - weight) * scale)).addcmul_(y, weight * scale)

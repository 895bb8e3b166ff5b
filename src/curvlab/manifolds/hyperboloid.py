"""Differentiable kernels of the Lorentz model: few passes over the points, exact derivatives.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`. Time is a function of the
space part s, so a derivative by a point is one by s: g_s + g_t s / t, in one pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.errors import UsageError
from curvlab.manifolds.kernels import curvature_like, dot, squared_norm


def negative_curvature(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """A negative curvature as a tensor `[..., 1]` that broadcasts against points.

    Raises:
        UsageError: The curvature is a number that is not negative, or the points are whole numbers.
    """
    if not isinstance(kappa, Tensor) and not kappa < 0:
        raise UsageError(
            f"the Lorentz model has a negative curvature, not kappa={kappa:g}: take a negative "
            "one, or the stereographic model, which has all"
        )
    return curvature_like(kappa, dtype, x)


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


def spread(s: Tensor, *scalars: Tensor) -> Tensor:
    """Vectors `[..., dim]` repeated, as a view, for all of the scalars `[..., 1]`."""
    if all(scalar.numel() == 1 and scalar.dim() <= s.dim() for scalar in scalars):
        return s
    shape = torch.broadcast_shapes(s.shape[:-1], *(scalar.shape[:-1] for scalar in scalars))
    return s.expand(*shape, s.shape[-1])


def lift(s: Tensor, kappa: Tensor) -> Tensor:
    """Prepend the time sqrt(|s|^2 - 1 / kappa) to space parts `[..., dim]`."""
    return _Lift.apply(spread(s, kappa), kappa)


def squared_half_chord(
    x: Tensor, y: Tensor, e: Tensor, tau_x: Tensor, tau_y: Tensor, gap: Tensor
) -> Tensor:
    """u^2 = |x / h_x - y / h_y|^2 h_x h_y / 4 with h = 1 + tau, `[..., 1]`.

    Computed as |e - near gap / h_near|^2 h_near / (4 h_far), where `near` is the point with the
    smaller tau: with the farther one two vectors as long as it would cancel. Swapping x and y
    changes no digit.

    Args:
        x: space parts `[..., dim]`.
        y: space parts.
        e: x - y.
        tau_x: sqrt(1 - kappa |x|^2).
        tau_y: the same of y.
        gap: tau_x - tau_y, from e.
    """
    x_is_far = gap >= 0
    near, far = (1 + torch.where(x_is_far, *taus) for taus in ((tau_y, tau_x), (tau_x, tau_y)))
    part = -gap / near
    if torch.is_grad_enabled():
        moved = torch.addcmul(e, torch.where(x_is_far, y, x), part)
    else:  # without an array of the nearer points
        none = torch.zeros_like(part)
        moved = torch.addcmul(e, y, torch.where(x_is_far, part, none))
        moved = moved.addcmul_(x, torch.where(x_is_far, none, part))
    return squared_norm(moved) * near / (4 * far)


class _Midpoint(Function):
    r"""The normalised sum m of a x and b y, a + b = 1, as a space part.

    With tau = sqrt(-kappa) t, h = 1 + tau, e = x - y and u^2 of `squared_half_chord`, in which
    nothing cancels,

        kappa <s, s>_L = n = 1 - 4 a b kappa u^2,    m = s / sqrt(n),    s = a x + b y.

    Its derivatives: d(u^2) = (e - x gap / tau_x) dx / 2 with gap = tau_x - tau_y for fixed y, the
    same with x and y swapped for fixed x.
    """

    generate_vmap_rule = True

    @staticmethod
    def _scalars(x: Tensor, y: Tensor, kappa: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        """e, tau_x, tau_y, h_x - h_y, -kappa u^2 and n."""
        tau_x, tau_y = ((1 - kappa * squared_norm(s)).sqrt() for s in (x, y))
        e = x - y
        gap = -kappa * dot(e, x + y) / (tau_x + tau_y)
        curved = -kappa * squared_half_chord(x, y, e, tau_x, tau_y, gap)
        n = 1 + 4 * weight * (1 - weight) * curved
        return e, tau_x, tau_y, gap, curved, n

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
        tau_x, tau_y, gap, curved, n = small
        pull, ab = dot(g, m) / n, weight * (1 - weight)
        along = ab * kappa * pull
        g_s = g * n.rsqrt()
        # With the nearer of both points, as in `squared_half_chord`: from e - x gap / tau_x and
        # gap = tau_x - tau_y follows e tau_y / tau_x - y gap / tau_x.
        x_is_far, one = gap >= 0, torch.ones_like(gap)
        near = torch.where(x_is_far, y, x)
        e_x, e_y = (
            torch.where(x_is_far, tau_y / tau_x, one),
            torch.where(x_is_far, one, tau_x / tau_y),
        )
        g_x = torch.addcmul(g_s * (1 - weight), e, along * e_x)
        g_x = torch.addcmul(g_x, near, -along * gap / tau_x)
        g_y = torch.addcmul(g_s * weight, e, -along * e_y)
        g_y = torch.addcmul(g_y, near, along * gap / tau_y)
        g_kappa = g_weight = None
        if ctx.needs_input_grad[2]:
            radial = squared_norm(x) / tau_x - squared_norm(y) / tau_y
            g_kappa = (-pull / 2 * ab * (gap * radial - squared_norm(e))).sum_to_size(kappa.shape)
        if ctx.needs_input_grad[3]:
            by_weight = -dot(g_s, e) - 2 * pull * curved * (1 - 2 * weight)
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
    chord = squared_half_chord(p, q, e, tau_x, tau_y, gap)
    n = 1 - 4 * kappa * weight * (1 - weight) * chord
    scale = n.rsqrt_()
    return (x * ((1 - weight) * scale)).addcmul_(y, weight * scale)

"""Functions with a derivative of their own, each beside what it is in plain autograd.

In a step of FPS-T every token and head takes several norms and tangents. Autograd's derivative of a
square has three passes over the vectors, where one will do; that of the tangent's polynomials has
five times as many operations as the closed form. Compiled code and forward mode take the plain
functions.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad


def _is_plain() -> bool:
    """Whether plain autograd is to be used: in compiled code and in forward mode."""
    return torch.compiler.is_compiling() or forward_ad._current_level >= 0


Coefficients = tuple[float, ...]
"""Coefficients of a polynomial, the lowest power first."""


def polynomial(z: Tensor, coefficients: Sequence[float]) -> Tensor:
    """sum_n c_n z^n."""
    *others, before, last = coefficients
    result = (z * last).add_(before)
    for coefficient in reversed(others):
        result = (result * z).add_(coefficient)
    return result


def plain_tan_quotient(z: Tensor, upper: Coefficients, rest: Coefficients) -> tuple[Tensor, Tensor]:
    """R = N / (N - z M) and q = M / N, the polynomials N and M of z."""
    n, m = polynomial(z, upper), polynomial(z, rest)
    # Between two poles the denominator is positive; rounding at a pole must not divide by 0.
    return n / torch.addcmul(n, z, m, value=-1).clamp(min=1e-7), m / n


class _TanQuotient(Function):
    """r = tan(s) / s of z = s^2, whose derivative is r (r - q) / 2, where r = 1 / (1 - z q)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, upper: Coefficients, rest: Coefficients) -> tuple[Tensor, Tensor]:
        return plain_tan_quotient(z, upper, rest)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        z, *ctx.polynomials = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(z, *output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        z, r, q = ctx.saved_tensors
        if torch.is_grad_enabled():
            r, q = plain_tan_quotient(z, *ctx.polynomials)
        return grads[0] * (r * (r - q) * 0.5), None, None


def tan_quotient(z: Tensor, upper: Coefficients, rest: Coefficients) -> Tensor:
    """The first of `plain_tan_quotient`."""
    if _is_plain():
        return plain_tan_quotient(z, upper, rest)[0]
    return _TanQuotient.apply(z, upper, rest)[0]


class _SquaredNorm(Function):
    """|x|^2 over the last axis, which is kept."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return plain_squared_norm(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return ctx.saved_tensors[0] * (2 * grads[0])


def plain_squared_norm(x: Tensor) -> Tensor:
    """|x|^2 over the last axis, which is kept."""
    return (x * x).sum(-1, keepdim=True)


def squared_norm(x: Tensor) -> Tensor:
    """`plain_squared_norm`."""
    result: Tensor = plain_squared_norm(x) if _is_plain() else _SquaredNorm.apply(x)
    return result


class _PrependTime(Function):
    """Space parts s `[..., dim]` behind their time t; a derivative by them is g_s + g_t s / t."""

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, kappa: Tensor) -> Tensor:
        return plain_prepend_time(s, kappa)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output, inputs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None]:
        point, kappa = ctx.saved_tensors
        g = grads[0]
        along = g[..., :1] / point[..., :1]
        by_kappa = None
        if ctx.needs_input_grad[1]:
            by_kappa = (along / (2 * kappa.square())).sum_to_size(kappa.shape)
        return torch.addcmul(g[..., 1:], point[..., 1:], along), by_kappa


def plain_prepend_time(s: Tensor, kappa: Tensor) -> Tensor:
    """Points `[..., 1 + dim]` of the hyperboloid with space parts `[..., dim]`."""
    return torch.cat([(plain_squared_norm(s) - 1 / kappa).sqrt(), s], -1)


def prepend_time(s: Tensor, kappa: Tensor) -> Tensor:
    """`plain_prepend_time`, of one curvature."""
    result: Tensor = plain_prepend_time(s, kappa) if _is_plain() else _PrependTime.apply(s, kappa)
    return result

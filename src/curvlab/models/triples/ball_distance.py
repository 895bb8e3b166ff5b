"""Squared distances in the unit ball as functions with derivatives of their own.

Scores of all entities are the largest thing that a step makes: passes over them are what it costs.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from curvlab.models.triples.distances import SMALLEST


def arsinh_squared(u2: Tensor) -> Tensor:
    """arsinh(u)^2 of u^2; what rounding has left below 0 counts as 0."""
    squared: Tensor = _ArsinhSquared.apply(u2)
    return squared


def squared_to_rays(p: Tensor, q: Tensor, scale: Tensor, length: Tensor, rim: float) -> Tensor:
    """arsinh(u)^2, u^2 = (p - q) exp(2 a) + (p + q) exp(-2 a) - 1/2, a = min(scale length, rim).

    Args:
        p: Of the queries, `[queries, 1]`.
        q: Of queries and entities, `[queries, entities]`.
        scale: Of the queries, `[queries, 1]`.
        length: Of the entities, `[1, entities]`.
        rim: Distance from the origin at which points are kept.

    Returns:
        `[queries, entities]`.
    """
    squared: Tensor = _SquaredToRays.apply(p, q, scale, length, rim)
    return squared


def _arsinh_squared_(u2: Tensor) -> tuple[Tensor, Tensor]:
    """arsinh(u)^2 and its derivative by u^2, in place; u^2 that rounding left below 0 counts as 0.

    arsinh(u) = log1p(u + u^2 / (1 + sqrt(1 + u^2))) is exact for small u, where the derivative
    arsinh(u) / (u sqrt(1 + u^2)) is 1.
    """
    u2 = u2.clamp_(min=SMALLEST)
    u, far = u2.sqrt(), (1 + u2).sqrt_()
    arsinh = u2.div_(1 + far).add_(u).log1p_()
    derivative = arsinh / u.mul_(far)
    return arsinh.square_(), derivative


class _ArsinhSquared(Function):
    """arsinh(u)^2 of u^2 `[...]`, in few passes."""

    @staticmethod
    def forward(ctx: Any, u2: Tensor) -> Tensor:
        """Keep the derivative alone."""
        squared, derivative = _arsinh_squared_(u2.clone())
        ctx.save_for_backward(derivative)
        return squared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Scale the derivative."""
        (derivative,) = ctx.saved_tensors
        return derivative * gradients[0]


class _SquaredToRays(Function):
    """u^2 is 2 p cosh(2 a) - 2 q sinh(2 a) - 1/2."""

    @staticmethod
    def forward(
        ctx: Any, p: Tensor, q: Tensor, scale: Tensor, length: Tensor, rim: float
    ) -> Tensor:
        """Keep what the derivatives share."""
        growth = (2 * scale * length).clamp_(max=2 * rim).exp_()
        shrunk = 1 / growth
        cosh, sinh = growth + shrunk, growth.sub_(shrunk)  # twice them
        u2 = torch.addcmul(p * cosh, q, sinh, value=-1).sub_(0.5)
        squared, derivative = _arsinh_squared_(u2)
        ctx.save_for_backward(p, q, scale, length, cosh, sinh, derivative)
        ctx.rim = rim
        return squared

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Products with the derivative by u^2; a point at the rim does not move along its ray."""
        p, q, scale, length, cosh, sinh, derivative = ctx.saved_tensors
        of_u2 = derivative * gradients[0]
        of_a = torch.addcmul(p * sinh, q, cosh, value=-1).mul_(of_u2).mul_(scale * length < ctx.rim)
        of_p = (of_u2 * cosh).sum(1, keepdim=True)
        return of_p, of_u2.mul_(sinh).neg_(), 2 * of_a @ length.T, 2 * scale.T @ of_a, None

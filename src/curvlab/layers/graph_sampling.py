"""Graphs drawn edge by edge, with a gradient for the probabilities."""

from typing import Any

import torch
from torch import Tensor


def sampled_graph(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    r"""A symmetric adjacency of 0 and 1 without loops, `[nodes, nodes]`, of independent edges.

    `A_uv = A_vu ~ Bernoulli(theta_uv)` for u < v. The gradient goes straight through the draw:
    `dL/dtheta_uv = dL/dA_uv + dL/dA_vu`.

    Args:
        probabilities: theta `[nodes, nodes]`, of which what is above the diagonal counts.
        generator: of the draw, on the same device; None for torch's own.

    Source: Franceschi et al. 2019 (LDS), Section 3.
    """
    return _StraightThrough.apply(probabilities, generator)


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ARG004
        probabilities: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        drawn = torch.empty_like(probabilities).uniform_(generator=generator)
        above = (drawn < probabilities).triu_(1)
        return (above | above.T).to(probabilities.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return (grad + grad.T).triu_(1), None


def propagated(adjacency: Tensor, x: Tensor) -> Tensor:
    """`D^{-1/2} (A + I) D^{-1/2} x`, D the degrees with the loops; `[nodes, dim]` as x is."""
    scale = (adjacency.sum(1, keepdim=True) + 1).rsqrt()
    scaled = scale * x
    return scale * (adjacency @ scaled + scaled)

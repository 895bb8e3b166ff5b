"""Steps of an optimiser that are themselves differentiable."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

BETAS = (0.9, 0.999)
EPS = 1e-8


class Moments(NamedTuple):
    """First and second moments of the gradients of some weights, and the number of steps."""

    first: tuple[Tensor, ...]
    second: tuple[Tensor, ...]
    steps: Tensor


def adam_step(
    weights: Sequence[Tensor], gradients: Sequence[Tensor], moments: Moments, lr: float
) -> tuple[tuple[Tensor, ...], Moments]:
    """One step of Adam as a function of its gradients.

    `eps` is added under the root, as its square: where a gradient is 0 the root of the second
    moment alone has no derivative.
    """
    beta1, beta2 = BETAS
    steps = moments.steps + 1
    first = tuple(m.lerp(g, 1 - beta1) for m, g in zip(moments.first, gradients, strict=True))
    second = tuple(
        beta2 * v + (1 - beta2) * g.square() for v, g in zip(moments.second, gradients, strict=True)
    )
    rate, spread = lr / (1 - beta1**steps), 1 / (1 - beta2**steps)
    moved = tuple(
        w - rate * m / (v * spread + EPS**2).sqrt()
        for w, m, v in zip(weights, first, second, strict=True)
    )
    return moved, Moments(first, second, steps)

"""Products, rotations and reflections of vectors as pairs of coordinates."""

import torch
from torch import Tensor

from curvlab.errors import UsageError


def complex_product(x: Tensor, y: Tensor) -> Tensor:
    """Product of complex numbers; halves of the last axis are their real and imaginary parts."""
    (a, b), (c, d) = x.chunk(2, -1), y.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def check_even(dim: int) -> None:
    """Refuse a width that has no halves.

    Raises:
        UsageError: it is odd.
    """
    if dim % 2:
        raise UsageError(f"dim={dim} must be even: its halves are one complex vector")


def rotate(angle: Tensor, x: Tensor) -> Tensor:
    """Rotate pairs of coordinates by the angle whose (cos, sin) `angle` is when normalised."""
    (cos, sin), (a, b) = _unit_pairs(angle), x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a - sin * b, sin * a + cos * b], -1).flatten(-2)


def reflect(angle: Tensor, x: Tensor) -> Tensor:
    """Reflect pairs of coordinates by [[cos, sin], [sin, -cos]]."""
    (cos, sin), (a, b) = _unit_pairs(angle), x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a + sin * b, sin * a - cos * b], -1).flatten(-2)


def _unit_pairs(angle: Tensor) -> tuple[Tensor, ...]:
    pairs = angle.unflatten(-1, (-1, 2))
    return (pairs / pairs.norm(dim=-1, keepdim=True).clamp(min=1e-15)).unbind(-1)

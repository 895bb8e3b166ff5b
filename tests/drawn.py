"""Random numbers that are the same in every run."""

from functools import partial

import torch
from torch import Tensor, nn


def draw(*shape: int, size: float = 1.0, seed: int = 0, dtype: torch.dtype | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation `size`."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, generator=generator, dtype=dtype)


def filled(layer: nn.Module, size: float = 0.4) -> nn.Module:
    """A layer whose parameters, biases too but for curvatures, are away from their first values."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in layer.named_parameters():
        if "curvature" not in name:
            parameter.data = size * torch.randn(parameter.shape, generator=generator)
    return layer


draw64 = partial(draw, dtype=torch.float64)

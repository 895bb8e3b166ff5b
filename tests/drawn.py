"""Random numbers that are the same in every run."""

from functools import partial

import torch
from torch import Tensor


def draw(*shape: int, size: float = 1.0, seed: int = 0, dtype: torch.dtype | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation `size`."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, generator=generator, dtype=dtype)


draw64 = partial(draw, dtype=torch.float64)

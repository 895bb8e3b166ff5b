"""This process: its number in a group, and the type of its new tensors."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DOUBLE = "64-true"
"""Lightning's word for a run in double precision."""


def in_group() -> bool:
    """Whether this process trains together with others."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def own_rank() -> int:
    """The number of this process in its group; 0 where it trains alone."""
    return torch.distributed.get_rank() if in_group() else 0


def group_size() -> int:
    """How many processes train together; 1 where this one trains alone."""
    return torch.distributed.get_world_size() if in_group() else 1


@contextmanager
def default_dtype(precision: str) -> Iterator[None]:
    """Make new floating-point tensors of the type that a run computes in, for a while.

    A prepared graph, a model and what a step makes are then of one type: float64 for `64-true`,
    else float32.

    Args:
        precision: of Lightning.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == DOUBLE else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)

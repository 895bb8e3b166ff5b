"""This process: its number and its share in a group, and the type of its new tensors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

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


def own_share(pieces: Sequence[T]) -> Sequence[T]:
    """The pieces of work that are this process's: of n processes every n-th, else all."""
    return pieces[own_rank() :: group_size()]


def put_together(table: Tensor) -> Tensor:
    """A table of zeros in which each process has filled rows of its own, with the rows of all.

    A number plus zeros is that number, so that nothing is rounded: what is then made of the rows in
    their order is the same, to the last digit, as in one process. All processes must call this.

    Args:
        table: of one shape and type in all of them; it is changed.
    """
    if in_group():
        torch.distributed.all_reduce(table)
    return table


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

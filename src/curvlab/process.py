"""Rank of this process, its share of the group's work, and its default dtype."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

DOUBLE = "64-true"  # Lightning's name of double precision


def is_distributed() -> bool:
    """Whether this process currently works in a group."""
    has_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    return has_group and not _outside_group.get()


_outside_group: ContextVar[bool] = ContextVar("outside_group", default=False)


@contextmanager
def without_group() -> Iterator[None]:
    """Let this process work within the block as if it had no group."""
    token = _outside_group.set(True)
    try:
        yield
    finally:
        _outside_group.reset(token)


def rank() -> int:
    """The rank of this process; 0 outside a group."""
    return torch.distributed.get_rank() if is_distributed() else 0


def world_size() -> int:
    """The number of processes that train together; 1 outside a group."""
    return torch.distributed.get_world_size() if is_distributed() else 1


def own_share(pieces: Sequence[T]) -> Sequence[T]:
    """This process's pieces of work: every n-th of n processes, else all."""
    return pieces[rank() :: world_size()]


def all_reduce_sum(table: Tensor) -> Tensor:
    """Sum a table in which each process has filled its own rows; exact, as others are zero."""
    if is_distributed():
        torch.distributed.all_reduce(table)
    return table


def all_gather_pieces(pieces: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Gather the results of all processes for the pieces of `own_share`, in their order."""
    if not is_distributed():
        return list(pieces)
    shares: list[Any] = [None] * world_size()
    torch.distributed.all_gather_object(shares, [piece.cpu() for piece in pieces])
    rounds = zip_longest(*shares)
    gathered = (piece for each_round in rounds for piece in each_round)
    return [piece.to(device) for piece in gathered if piece is not None]


@contextmanager
def default_dtype(precision: str) -> Iterator[None]:
    """Make new floating-point tensors float64 for `64-true`, else float32, within the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == DOUBLE else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)

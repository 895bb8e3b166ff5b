"""Rank of this process, its share of the group's work, and its default dtype."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, zip_longest
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

DOUBLE = "64-true"  # Lightning's name of double precision


def is_distributed() -> bool:
    """Whether this process currently works in a group."""
    has_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    return has_group and not _ignores_group.get()


_ignores_group: ContextVar[bool] = ContextVar("ignores_group", default=False)


@contextmanager
def without_group() -> Iterator[None]:
    """Let this process work within the block as if it had no group."""
    token = _ignores_group.set(True)
    try:
        yield
    finally:
        _ignores_group.reset(token)


def rank() -> int:
    """The rank of this process; 0 outside a group."""
    return torch.distributed.get_rank() if is_distributed() else 0


def world_size() -> int:
    """The number of processes that train together; 1 outside a group."""
    return torch.distributed.get_world_size() if is_distributed() else 1


def local_shard(pieces: Sequence[T]) -> Sequence[T]:
    """This process's pieces of work: every n-th piece in a group of n processes."""
    return pieces[rank() :: world_size()]


def all_reduce_sum(table: Tensor) -> Tensor:
    """Sum a table of which each process has filled some rows; exact, since other rows are 0."""
    if is_distributed():
        torch.distributed.all_reduce(table)
    return table


def all_gather_pieces(pieces: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Gather the results of all processes for the pieces of `local_shard`, in their order."""
    if not is_distributed():
        return list(pieces)
    shares: list[Any] = [None] * world_size()
    torch.distributed.all_gather_object(shares, [piece.cpu() for piece in pieces])
    gathered = chain.from_iterable(zip_longest(*shares))
    return [piece.to(device) for piece in gathered if piece is not None]


@contextmanager
def default_dtype(precision: str) -> Iterator[None]:
    """Make new floating-point tensors float64 for `64-true`, else float32, within the block."""
    previous = torch.get_default_dtype()
    dtype = torch.float64 if precision == DOUBLE else torch.float32
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)

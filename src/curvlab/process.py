"""This process: its number and its share in a group, and the type of its new tensors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

DOUBLE = "64-true"  # Lightning's word for a run in double precision


def in_group() -> bool:
    """Whether this process works together with others, now."""
    here = torch.distributed.is_available() and torch.distributed.is_initialized()
    return here and not _alone.get()


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Let this process do by itself what others of its group do not."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def rank() -> int:
    """The number of this process in its group; 0 where it trains alone."""
    return torch.distributed.get_rank() if in_group() else 0


def world_size() -> int:
    """How many processes train together; 1 where this one trains alone."""
    return torch.distributed.get_world_size() if in_group() else 1


def own_share(pieces: Sequence[T]) -> Sequence[T]:
    """The pieces of work that are this process's: of n processes every n-th, else all."""
    return pieces[rank() :: world_size()]


def all_reduce_sum(table: Tensor) -> Tensor:
    """Sum a table in which each process has filled its own rows; exact, as others are zero."""
    if in_group():
        torch.distributed.all_reduce(table)
    return table


def all_gather_pieces(own: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Gather the results of all processes for the pieces of `own_share`, in their order."""
    if not in_group():
        return list(own)
    kinds: list[Any] = [None] * world_size()
    torch.distributed.all_gather_object(kinds, [(piece.shape, piece.dtype) for piece in own])
    pieces = []
    for number in range(sum(map(len, kinds))):
        place, source = divmod(number, world_size())
        shape, dtype = kinds[source][place]
        mine = source == rank()
        made = own[place] if mine else torch.empty(shape, dtype=dtype, device=device)
        pieces.append(made.contiguous())
        torch.distributed.broadcast(pieces[-1], src=source)
    return pieces


@contextmanager
def default_dtype(precision: str) -> Iterator[None]:
    """Make new floating-point tensors float64 for `64-true`, else float32, within the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == DOUBLE else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def summed_over_processes(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes, and of its gradients; itself where there is one.

    All processes call this and backward equally often and in the same order. `attend` on the sums
    of a `summary` is linear attention over all nodes.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        from torch.distributed.nn.functional import all_reduce  # not in builds without processes

        summed: Tensor = all_reduce(x)
        return summed
    return x

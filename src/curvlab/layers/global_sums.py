"""Sums over all processes that a gradient goes through."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def summed_over_processes(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes of the default group; itself where there is one.

    With it, attention that is linear in the tokens is exact over a graph whose nodes are shared
    out: `summary` of each process's nodes, this sum of its two parts, then `attend`. What is
    communicated, `[heads, h, h]` and `[heads, h]` a layer, does not depend on the number of nodes.

    The gradient of a sum over processes is the sum of the processes' gradients, each of which is
    the derivative of that process's loss: every process gets the derivative of the sum of all
    losses with respect to its own part, and DDP's mean over processes is then that of the mean
    loss.

    Args:
        x: of one shape, type and kind of device in all processes, all of which must call this, and
            backward, equally often and in the same order.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return _SumOverProcesses.apply(x)
    return x


class _SumOverProcesses(Function):
    """The sum, forward and backward."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Sum."""
        return _sum(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        """Sum of the gradients."""
        return _sum(grad)


def _sum(x: Tensor) -> Tensor:
    total = x.detach().clone(memory_format=torch.contiguous_format)
    torch.distributed.all_reduce(total)
    return total

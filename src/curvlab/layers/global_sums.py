"""Sums over all processes that a gradient goes through."""

import torch
from torch import Tensor


def summed_over_processes(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes of the default group; itself where there is one.

    With it, attention that is linear in the tokens is exact over a graph whose nodes are shared
    out: `summary` of each process's nodes, this sum of its two parts, then `attend`. What is
    communicated, `[heads, h, h]` and `[heads, h]` a layer, does not depend on the number of nodes.

    The gradient of a sum over processes is the sum of the processes' gradients: every process gets
    the derivative of the sum of all losses with respect to its own part, and DDP's mean over
    processes is that of the mean loss.

    Args:
        x: of one shape, type and kind of device in all processes. All must call this, and backward,
            equally often and in the same order.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        from torch.distributed.nn.functional import all_reduce  # not in builds without processes

        summed: Tensor = all_reduce(x)
        return summed
    return x

"""Activations by name, dropout that costs a processor little, and batch normalisation."""

from collections.abc import Callable, Sequence
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.checked import checked
from curvlab.options import Activation


@checked
def activation_function(name: Activation) -> Callable[[Tensor], Tensor]:
    """The activation called `name`."""
    function: Callable[[Tensor], Tensor] = getattr(torch.nn.functional, name)
    return function


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d`, with the running statistics where a batch has one row.

    One row has no variance, and PyTorch refuses to train on it. As in evaluation, the row is
    normalised by the running statistics, which it does not update.

    Shapes: `[nodes, dim]` to `[nodes, dim]`.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or len(input) > 1:
            return super().forward(input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


_LEVELS = 2**16


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """`torch.nn.functional.dropout`; on a processor four entries share a random number of 64 bits.

    Drawing one number an entry, as torch does there, takes several times as long as all the rest,
    on one thread. Each entry gets 16 bits, so that the probability is rounded to a multiple of
    2^-16, and what is kept is divided by the share that is: the expectation is x.
    """
    if not training or p == 0 or x.device.type != "cpu":
        return F.dropout(x, p, training)
    return x * dropout_mask(x.shape, p, x.device).to(x.dtype).mul_(
        _LEVELS / (_LEVELS - _zero_levels(p))
    )


def dropout_mask(shape: Sequence[int], p: float, device: torch.device) -> Tensor:
    """Which entries of a tensor `dropout` keeps, as truth values."""
    if device.type != "cpu":
        return torch.rand(tuple(shape), device=device) >= p
    count = prod(shape)
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.int16)[:count] >= _zero_levels(p) - _LEVELS // 2
    return kept.view(tuple(shape))


def _zero_levels(p: float) -> int:
    """Number of the 2^16 levels that are zeroed."""
    return min(round(p * _LEVELS), _LEVELS - 1)


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` by `dropout`."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

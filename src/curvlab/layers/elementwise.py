"""Activations by name, dropout that is fast on CPU, and batch normalisation."""

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
    """`torch.nn.BatchNorm1d` that uses the running statistics for a batch of one row.

    One row has no variance, and PyTorch refuses to train on it. Here it is normalised by the
    running statistics, which it does not update.

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
    """`torch.nn.functional.dropout`; on CPU four entries share a random number of 64 bits.

    On CPU, torch draws one number per entry on one thread, which takes several times as long as all
    other work. Here each entry gets 16 bits. The probability is rounded to a multiple of 2^-16, and
    entries are divided by the rounded share that is kept, so that the expectation is x.
    """
    if not training or p == 0 or x.device.type != "cpu":
        return F.dropout(x, p, training)
    scale = _LEVELS / (_LEVELS - _zero_levels(p))
    mask = dropout_mask(x.shape, p, x.device).to(x.dtype)
    return x * mask.mul_(scale)


def dropout_mask(shape: Sequence[int], p: float, device: torch.device) -> Tensor:
    """Mask of the entries that `dropout` keeps."""
    if device.type != "cpu":
        return torch.rand(tuple(shape), device=device) >= p
    count = prod(shape)
    words = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    mask = words.view(torch.int16)[:count] >= _zero_levels(p) - _LEVELS // 2
    return mask.view(tuple(shape))


def _zero_levels(p: float) -> int:
    """Number of the 2^16 levels that are zeroed."""
    return min(round(p * _LEVELS), _LEVELS - 1)


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` by `dropout`."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

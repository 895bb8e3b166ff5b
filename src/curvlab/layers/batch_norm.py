"""Batch normalisation that takes a graph of one node."""

import torch.nn.functional as F
from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d`, with the running statistics where a batch has one row.

    One row has no variance, and PyTorch refuses to train on it. As in evaluation, the row is
    normalised by the running statistics, which it does not update.

    Shapes: `[nodes, dim]` to `[nodes, dim]`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the rows."""
        if not self.training or len(input) > 1:
            return super().forward(input)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )

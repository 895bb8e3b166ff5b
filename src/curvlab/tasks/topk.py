"""The largest values of long rows."""

import math

import torch
from torch import Tensor


def row_topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row, descending, and their columns, `[rows, count]`.

    The largest values are in the blocks of columns with the largest maxima. Finding these blocks is
    faster than sorting the rows.
    """
    num_columns = values.shape[1]
    size = math.isqrt(num_columns // count)
    num_blocks = num_columns // max(size, 1)
    if num_blocks <= 4 * count:
        largest = values.topk(count, dim=1)
        return largest.values, largest.indices
    end = num_blocks * size
    maxima = values[:, :end].unflatten(1, (num_blocks, size)).amax(dim=2)
    blocks = maxima.topk(count, dim=1).indices
    block_columns = (blocks[:, :, None] * size + torch.arange(size)).flatten(1)
    last_columns = torch.arange(end, num_columns).expand(len(values), -1)
    columns = torch.cat([block_columns, last_columns], dim=1)
    largest = values.gather(1, columns).topk(count, dim=1)
    return largest.values, columns.gather(1, largest.indices)

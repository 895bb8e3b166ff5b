"""The largest values of long rows."""

import math

import torch
from torch import Tensor


def largest_of_rows(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row `[rows, count]`, descending, and their columns.

    They are in the blocks with the largest maxima, which are found faster than by sorting rows.
    """
    columns = values.shape[1]
    size = math.isqrt(columns // count)
    blocks = columns // max(size, 1)
    if blocks <= 4 * count:
        largest = values.topk(count, dim=1)
        return largest.values, largest.indices
    whole = blocks * size
    maxima = values[:, :whole].unflatten(1, (blocks, size)).amax(dim=2)
    first = maxima.topk(count, dim=1).indices[:, :, None] * size
    inside = (first + torch.arange(size)).flatten(1)
    rest = torch.arange(whole, columns).expand(len(values), -1)
    places = torch.cat([inside, rest], dim=1)
    best, at = values.gather(1, places).topk(count, dim=1)
    return best, places.gather(1, at)

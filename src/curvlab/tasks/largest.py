"""The largest values of long rows, and their ranks."""

import math

import torch
from torch import Tensor

from curvlab.metrics.ranking import ranks_among


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


def ranks_of_best(best: Tensor, values: Tensor, count: int) -> Tensor:
    """Ranks `[rows, count]` of the largest values of each row; the mean rank where they are tied.

    Only the last of them can be tied with a value that is not among them. `best` has one value
    more where there is one: rows in which it is less need no look at all values.
    """
    kept = best[:, :count].contiguous()
    rank = ranks_among(kept, kept)
    if best.shape[1] == count:
        return rank
    for row in (best[:, count] == kept[:, -1]).nonzero().flatten().tolist():
        last = kept[row] == kept[row, -1]
        beyond = torch.count_nonzero(values[row] == kept[row, -1]) - last.sum()
        rank[row] += last * beyond / 2
    return rank

"""The largest scores of long rows, and their ranks, are those that sorting gives."""

import pytest
import torch

from curvlab.metrics.ranking import ranks_among
from curvlab.tasks.predictions import largest_of_rows, ranks_of_best


@pytest.mark.parametrize("columns", [1, 9, 90, 1000, 1003, 4999])
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("different", [2, 30, 10**6])
def test_the_largest_of_long_rows_and_their_ranks(columns, count, different):
    count = min(count, columns)
    generator = torch.Generator().manual_seed(columns + count)
    values = torch.randint(different, (5, columns), generator=generator).float()
    values[0, : columns // 2] = -torch.inf
    best, places = largest_of_rows(values, count)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(values.gather(1, places), best)
    assert all(len({*row}) == count for row in places.tolist())
    torch.testing.assert_close(ranks_of_best(best, values), ranks_among(best, values))

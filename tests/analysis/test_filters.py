"""Learned filters: clusters of planted ones, what a run writes, the picture."""

import numpy as np
import pytest
import torch

from curvlab.analysis.filters import (
    EIGENVALUES,
    NodeFilters,
    filter_clusters,
    load_filters,
    save_filters,
)
from curvlab.errors import UsageError


def planted():
    """Thirty nodes pass low frequencies, `(2 - l) / 2`, ten high ones, `l / 2`, on both bases."""
    low, high = torch.tensor([0.5, -0.5, 0.0]), torch.tensor([0.5, 0.5, 0.0])
    noise = 1e-3 * torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    return NodeFilters(torch.stack([low] * 30 + [high] * 10) + noise, "cheb")


def test_planted_filters_are_found():
    first, second = filter_clusters(planted(), 2)
    assert (first.share, second.share) == (0.75, 0.25)
    np.testing.assert_allclose(first.mean, 1 - EIGENVALUES / 2, atol=2e-3)
    np.testing.assert_allclose(second.mean, EIGENVALUES / 2, atol=2e-3)
    assert (first.low <= first.mean).all()
    assert (first.mean <= first.high).all()


def test_rounding_makes_no_clusters():
    """float32 sums of the same numbers in another order are another filter in the last digit."""
    torch.manual_seed(0)
    rounded = torch.tensor([3.0, -1.0]) * (1 + 1e-6 * torch.randn(20, 1))
    assert [cluster.share for cluster in filter_clusters(NodeFilters(rounded, "mono"), 5)] == [1]


def test_there_and_back(tmp_path):
    save_filters(tmp_path / "filters.npz", planted())
    found = load_filters(tmp_path / "filters.npz")
    assert torch.equal(found.coefficients, planted().coefficients)
    assert found.basis == "cheb"


@pytest.mark.parametrize("count", [0, 41])
def test_impossible_numbers_of_clusters(count):
    with pytest.raises(UsageError, match="must lie between 1 and 40"):
        filter_clusters(planted(), count)


def test_files_that_are_missing_or_damaged(tmp_path):
    with pytest.raises(UsageError, match="runs of polyattn_mono"):
        load_filters(tmp_path / "filters.npz")
    (tmp_path / "filters.npz").write_bytes(b"PK")
    with pytest.raises(UsageError, match="has no filters"):
        load_filters(tmp_path / "filters.npz")

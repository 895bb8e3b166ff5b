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
from curvlab.analysis.model_figures import FilterPanel, filters_figure
from curvlab.analysis.style import save_figure
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


def test_one_filter_for_all_is_one_cluster():
    shared = NodeFilters(torch.tensor([[0.0, 1.0]]).expand(20, 2), "mono")
    (cluster,) = filter_clusters(shared, 5)
    assert cluster.share == 1
    np.testing.assert_allclose(cluster.mean, 1 - EIGENVALUES, atol=1e-12)


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


def test_the_picture_has_a_line_a_cluster(tmp_path):
    panel = FilterPanel(filter_clusters(planted(), 2), [EIGENVALUES])
    figure = filters_figure({"a": panel, "b": panel, "c": panel})
    axes = [axis for axis in figure.axes if axis.lines]
    assert [len(axis.lines) for axis in axes] == [3, 3, 3]
    assert save_figure(figure, tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [0, 41])
def test_impossible_numbers_of_clusters(count):
    with pytest.raises(UsageError, match="must lie between 1 and 40"):
        filter_clusters(planted(), count)


def test_filters_of_a_diverged_run():
    with pytest.raises(UsageError, match="has diverged"):
        filter_clusters(NodeFilters(torch.full((4, 2), torch.nan), "mono"), 2)


def test_files_that_are_missing_or_damaged(tmp_path):
    with pytest.raises(UsageError, match="runs of polyattn_mono"):
        load_filters(tmp_path / "filters.npz")
    (tmp_path / "filters.npz").write_bytes(b"PK")
    with pytest.raises(UsageError, match="has no filters"):
        load_filters(tmp_path / "filters.npz")

"""The peak of what a block makes is that of its tensors that are alive at once."""

from types import SimpleNamespace

import pytest
import torch

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.loaders.datamodule import load_source
from curvlab.errors import UsageError
from curvlab.memory import PeakBytes


def test_tensors_that_are_alive_at_once_count_and_views_do_not():
    x = torch.zeros(1000)
    with PeakBytes() as made:
        y = x + 1
        y.view(10, 100).add_(1)
        for _ in range(3):
            z = y.double()
            del z
    assert made.peak == 4000 + 8000


def test_a_matrix_product_of_autograd_counts_what_it_keeps_until_it_is_freed():
    x = torch.zeros(10, 10, requires_grad=True)
    with PeakBytes() as made:
        y = x.exp().exp()
        assert y.requires_grad
        del y
        x.exp()
    assert made.peak == 2 * 400


def test_a_graph_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=24e9))
    monkeypatch.setattr(SyntheticLarge, "load", lambda _: pytest.fail("it is made"))
    with pytest.raises(UsageError, match=r"the graph needs at least 31\.4 GB and 24\.0 GB"):
        load_source(SyntheticLarge(num_nodes=50_000_000))

"""The large generated graph has the tail, the homophily and the signal that it is asked for."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import degree, homophily

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files.cleaning import check_graph
from curvlab.errors import UsageError
from graphs import is_simple

pytestmark = pytest.mark.slow


def graph(**changes):
    return SyntheticLarge(**{"num_nodes": 20_000, **changes}).load()


@pytest.mark.parametrize("seed", range(2))
def test_simple_undirected_and_of_the_stated_size(seed):
    data = graph(seed=seed)
    assert (data.num_nodes, data.num_features) == (20_000, 32)
    assert is_simple(data)
    assert 0.93 * 200_000 < data.num_edges <= 200_000
    assert (data.x.dtype, data.y.dtype) == (torch.float32, torch.int64)
    counts = torch.bincount(data.y)
    assert len(counts) == 10
    assert counts.min() > 2_000 - 5 * (2_000 * 0.9) ** 0.5


@pytest.mark.parametrize("exponent", [2.5, 3.0, 3.5])
def test_degrees_have_a_power_law_tail(exponent):
    """By Hill's estimate; Poisson noise and lost duplicates bend the tail a little."""
    data = graph(num_nodes=100_000, exponent=exponent, mean_degree=20.0)
    top = degree(data.edge_index[0]).sort(descending=True).values[:1_001].double()
    estimate = 1 + 1 / float((top[:-1] / top[-1]).log().mean())
    assert estimate == pytest.approx(exponent, abs=0.3)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 0.9])
def test_edges_stay_in_their_class_as_often_as_asked(share):
    """Duplicates are more frequent within a class, which is why a little is missing."""
    data = graph(homophily=share, exponent=3.5)
    tolerance = 0.005 + 4 * (share * (1 - share) / (data.num_edges / 2)) ** 0.5
    assert homophily(data.edge_index, data.y) == pytest.approx(share, abs=tolerance)


def test_features_have_the_stated_moments():
    data = graph(signal=2.0)
    centres = torch.stack([data.x[data.y == c].mean(0) for c in range(10)])
    assert torch.allclose(centres.norm(dim=1), torch.full((10,), 2.0), atol=0.15)
    assert float((data.x - centres[data.y]).var()) == pytest.approx(1, abs=0.01)


def test_too_low_a_degree_makes_no_edge(tmp_path):
    """In memory as on disk; what cannot be trained on it says that the graph is empty."""
    source = SyntheticLarge(num_nodes=500, mean_degree=1e-4)
    data = source.load()
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64
    stored = source.to_disk(tmp_path / "graph")
    assert stored.num_edges == 0
    assert np.array_equal(stored.read("features"), data.x)
    with pytest.raises(UsageError, match=r"empty \(500 nodes, 0 edges\)"):
        check_graph(data)

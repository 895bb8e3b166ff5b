"""Scaled, extended and mixed features against their definitions."""

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.transforms.features import DegreeFeatures, HopFeatures, RowNormalise, StackedHops
from curvlab.data.transforms.graph import apply_transform


@pytest.fixture
def graph():
    """Forty nodes and two without neighbours."""
    data = SyntheticWeb(40, 0.5, seed=0).load()
    data.num_nodes = 42
    data.x = torch.randn(42, 5, generator=torch.Generator().manual_seed(0))
    return data


def test_rows_sum_to_one_and_empty_rows_stay_empty():
    data = Data(x=torch.tensor([[1.0, 3.0], [0.0, 0.0], [-2.0, 1.0], [1.0, -1.0]]))
    expected = [[0.25, 0.75], [0.0, 0.0], [2.0, -1.0], [0.0, 0.0]]
    before = data.x.tolist()
    assert RowNormalise(enabled=False)(data).x.tolist() == before
    assert RowNormalise(enabled=True)(data).x.tolist() == expected


def test_missing_features_stay_missing():
    assert RowNormalise(enabled=True)(Data(x=torch.tensor([[torch.nan, 1.0]]))).x.isnan().all()


def test_degrees_are_appended_one_hot_and_clipped():
    # A star of four leaves and one node alone.
    edges = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]])
    data = Data(x=2 * torch.ones(6, 2), edge_index=edges, num_nodes=6)
    x = DegreeFeatures(max_degree=3, row_normalise=False)(data).x
    leaf, hub, alone = [2, 2, 0, 1, 0, 0, 1], [2, 2, 0, 0, 0, 1, 1], [2, 2, 1, 0, 0, 0, 1]
    assert x.tolist() == [hub, leaf, leaf, leaf, leaf, alone]
    scaled = DegreeFeatures(max_degree=3, row_normalise=True)(data).x
    assert scaled[:, :2].eq(0.5).all()
    assert torch.equal(scaled[:, 2:], x[:, 2:])


@pytest.mark.parametrize("hops", [1, 3, 10])
def test_hops_are_powers_of_the_normalised_adjacency(hops, graph):
    adjacency = np.eye(42)
    adjacency[tuple(graph.edge_index.numpy())] = 1
    scale = fractional_matrix_power(np.diag(adjacency.sum(axis=1)), -0.5)
    powers = [np.linalg.matrix_power(scale @ adjacency @ scale, r) for r in range(hops + 1)]
    blocks = [power @ graph.x.double().numpy() for power in powers]
    last, every = HopFeatures(hops)(graph.clone()).x, StackedHops(hops)(graph.clone()).x
    assert (last.dtype, every.shape) == (torch.float32, (42, 5 * (hops + 1)))
    np.testing.assert_allclose(last.numpy(), blocks[-1], atol=1e-5)
    np.testing.assert_allclose(every.numpy(), np.concatenate(blocks, axis=1), atol=1e-5)
    assert torch.equal(last[40:], graph.x[40:])  # nodes without neighbours keep theirs


def test_no_hops_leave_the_features_and_no_file(graph, tmp_path):
    assert apply_transform(HopFeatures(0), graph, tmp_path).x is graph.x
    assert list(tmp_path.iterdir()) == []

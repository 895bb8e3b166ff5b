"""The generated graph is connected, tree-like, scale-free, and always the same."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import degree

from curvlab.data.datasets.synthetic import SyntheticWeb
from graphs import is_connected, is_simple


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 200), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_connected_simple_and_undirected_for_every_option(num_nodes, fraction, seed):
    graph = SyntheticWeb(num_nodes, fraction, seed).load()
    assert graph.num_nodes == num_nodes
    assert is_connected(graph)
    assert is_simple(graph)
    assert num_nodes - 1 <= graph.num_edges // 2 <= 2 * (num_nodes - 1)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 1.0])
def test_number_of_edges_is_the_trees_plus_the_fraction(fraction):
    graph = SyntheticWeb(2001, fraction, seed=3).load()
    assert graph.num_edges // 2 == 2000 + 2000 * fraction


def test_degrees_are_heavy_tailed():
    graph = SyntheticWeb(20_000, 0.0, seed=0).load()
    degrees = degree(graph.edge_index[0]).numpy()
    # Barabasi-Albert trees: P(k) = 4 / (k (k + 1) (k + 2)), largest degree of order sqrt(n)
    for k in (1, 2, 3):
        assert np.mean(degrees == k) == pytest.approx(4 / (k * (k + 1) * (k + 2)), abs=0.01)
    assert degrees.max() > 0.3 * np.sqrt(20_000)


def test_same_graph_on_every_machine():
    edges = SyntheticWeb(50, 0.5, seed=0).load().edge_index.numpy().astype("<i8")
    digest = hashlib.sha256(edges.tobytes()).hexdigest()
    assert digest[:16] == "bed95321beea755b"

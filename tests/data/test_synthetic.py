"""The generated web is connected, tree-like, scale-free; the disease obeys its process."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.utils import degree

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.datasets.synthetic_disease import SyntheticDisease
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


def parents(data):
    """The parent of every node but the root: its only neighbour with a smaller number."""
    source, target = data.edge_index
    down = source < target
    assert torch.equal(target[down].sort().values, torch.arange(1, data.num_nodes))
    return source[down][target[down].argsort()]


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_along_which_only_the_infected_infect(seed):
    data = SyntheticDisease(features=40, seed=seed).load()
    assert data.num_edges == 2 * (data.num_nodes - 1)
    parent = parents(data)
    children = torch.bincount(parent)
    assert int(children.min()) >= 0
    inner = children[children > 0]
    assert (int(inner.min()), int(inner.max())) == (2, 6)
    depth = torch.zeros(data.num_nodes, dtype=torch.long)
    for node in range(1, data.num_nodes):
        depth[node] = depth[parent[node - 1]] + 1
    assert torch.equal(depth[degree(data.edge_index[0]) == 1].unique(), torch.tensor([5]))
    assert data.y[0] == 1
    assert (data.y[1:] <= data.y[parent]).all()


def test_the_rates_and_moments_are_the_stated_ones():
    graphs = [SyntheticDisease(features=40, seed=seed).load() for seed in range(20)]
    exposed = torch.cat([g.y[1:][g.y[parents(g)] == 1] for g in graphs]).double()
    assert float(exposed.mean()) == pytest.approx(0.618, abs=4 * 0.486 / len(exposed) ** 0.5)
    infected = torch.cat([g.x[g.y == 1] for g in graphs])
    assert float(infected.mean()) == pytest.approx(0.244, abs=0.01)
    assert float(infected.std()) == pytest.approx(0.84, abs=0.01)
    escaped = torch.cat([g.x[1:][(g.y[1:] == 0) & (g.y[parents(g)] == 1)] for g in graphs])
    assert float(escaped.mean()) == pytest.approx(0.62, abs=0.01)
    never = torch.cat([g.x[1:][g.y[parents(g)] == 0] for g in graphs])
    mixture = 0.618 * 0.244 + 0.382 * 0.62
    assert float(never.mean()) == pytest.approx(mixture, abs=0.01)

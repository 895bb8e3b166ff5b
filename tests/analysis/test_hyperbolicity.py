"""Gromov's delta against known values and against all quadruples."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curvlab.analysis import hyperbolicity as module
from curvlab.analysis.hyperbolicity import four_point_delta, hyperbolicity
from curvlab.errors import UsageError
from graphs import of_networkx


def bounds_of(network, **options):
    return hyperbolicity(*of_networkx(network), **options)


def delta_of(network):
    low, high, _ = bounds_of(network)
    assert low == high
    return low


def by_definition(distance):
    """The largest half difference of the two largest sums, over all quadruples."""
    quadruples = list(itertools.combinations(range(len(distance)), 4))
    x, y, v, w = np.array(quadruples, int).reshape(-1, 4).T
    pairings = [(x, y, v, w), (x, v, y, w), (x, w, y, v)]
    sums = np.sort([distance[a, b] + distance[c, d] for a, b, c, d in pairings], axis=0)
    return (sums[2] - sums[1]).max(initial=0) / 2


@pytest.mark.parametrize(
    ("network", "delta"),
    [
        *((nx.cycle_graph(n), n // 4 - (0.5 if n % 4 == 1 else 0)) for n in range(3, 26)),
        *((nx.grid_2d_graph(m, n), m - 1) for m, n in [(2, 2), (2, 9), (3, 4), (5, 5), (4, 12)]),
        *((nx.complete_graph(nodes), 0) for nodes in (2, 3, 4, 30)),
        *((nx.random_labeled_tree(150, seed=seed), 0) for seed in range(4)),
        (nx.barbell_graph(6, 5), 0),
        (nx.lollipop_graph(5, 4), 0),
    ],
)
def test_closed_forms_of_cycles_grids_trees_and_block_graphs(network, delta):
    assert delta_of(network) == delta


@settings(max_examples=80, deadline=None)
@given(st.integers(4, 11), st.floats(0.1, 0.6), st.integers(0, 10_000))
def test_agrees_with_all_quadruples(nodes, probability, seed):
    network = nx.gnp_random_graph(nodes, probability, seed=seed)
    network = network.subgraph(max(nx.connected_components(network), key=len))
    if len(network) < 2:
        return
    distance = np.asarray(nx.floyd_warshall_numpy(network)).astype(int)
    assert four_point_delta(distance) == by_definition(distance)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 9), st.integers(0, 10_000))
@example(points=6, seed=586)  # two of them are the same
def test_agrees_with_all_quadruples_on_any_metric(points, seed):
    # Distances between grid points in the sup norm: a metric that is not a graph's.
    grid = np.random.default_rng(seed).integers(0, 12, size=(points, 3))
    distance = np.abs(grid[:, None] - grid[None]).max(axis=-1)
    assert four_point_delta(distance) == by_definition(distance)


def test_chunks_change_nothing(monkeypatch):
    network = nx.connected_watts_strogatz_graph(40, 4, 0.2, seed=1)
    whole = delta_of(network)
    monkeypatch.setattr(module, "ENTRIES_PER_CHUNK", 1)
    assert delta_of(network) == whole > 0


def test_the_largest_component_counts():
    assert bounds_of(nx.disjoint_union(nx.cycle_graph(12), nx.cycle_graph(8))) == (3, 3, 6)


@pytest.mark.parametrize(
    ("network", "delta"),
    [
        (nx.grid_2d_graph(6, 30), 5),
        (nx.cycle_graph(90), 22),
        (nx.disjoint_union(nx.grid_2d_graph(7, 7), nx.cycle_graph(30)), 6),
        (nx.barbell_graph(20, 25), 0),  # a sample of its bells misses the diameter
    ],
)
def test_the_bounds_of_a_sample_hold_for_the_graph(network, delta, monkeypatch):
    monkeypatch.setattr(module, "EXACT", 8)
    component = network.subgraph(max(nx.connected_components(network), key=len))
    diameter = nx.diameter(component)
    for seed in range(20):
        low, high, longest = bounds_of(network, seed=seed)
        assert low <= delta <= high
        assert longest == diameter == 2 * high


def test_a_graph_without_edges_is_refused():
    with pytest.raises(UsageError, match="without edges"):
        bounds_of(nx.empty_graph(5))

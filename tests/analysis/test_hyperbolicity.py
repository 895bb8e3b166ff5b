"""Gromov's delta and other facts of graphs, against known values and all quadruples."""

import itertools
import time

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from curvlab.analysis import hyperbolicity as module
from curvlab.analysis.graph_facts import graph_facts, tail_exponent
from curvlab.analysis.hyperbolicity import (
    adjacency_matrix,
    four_point_delta,
    hyperbolicity,
    mean_delta,
    shortest_distances,
)
from curvlab.errors import UsageError
from graphs import of_networkx


def bounds_of(network, **options):
    return hyperbolicity(*of_networkx(network), **options)


def delta_of(network):
    low, high, _ = bounds_of(network)
    assert low == high
    return low


def deltas(distance, x, y, v, w):
    """Half the difference of the two largest sums of each quadruple."""
    pairs = [(x, y, v, w), (x, v, y, w), (x, w, y, v)]
    sums = np.sort([distance[a, b] + distance[c, d] for a, b, c, d in pairs], axis=0)
    return (sums[2] - sums[1]) / 2


def of_all_quadruples(distance):
    quadruples = list(itertools.combinations(range(len(distance)), 4))
    return deltas(distance, *np.array(quadruples, int).reshape(-1, 4).T)


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
    assert four_point_delta(distance) == of_all_quadruples(distance).max(initial=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 9), st.integers(0, 10_000))
@example(points=6, seed=586)  # two of them are the same
def test_agrees_with_all_quadruples_on_any_metric(points, seed):
    # Distances between grid points in the sup norm: a metric that is not a graph's.
    grid = np.random.default_rng(seed).integers(0, 12, size=(points, 3))
    distance = np.abs(grid[:, None] - grid[None]).max(axis=-1)
    assert four_point_delta(distance) == of_all_quadruples(distance).max(initial=0)


def test_chunks_change_nothing(monkeypatch):
    network = nx.connected_watts_strogatz_graph(40, 4, 0.2, seed=1)
    whole = delta_of(network)
    monkeypatch.setattr(module, "ENTRIES_PER_CHUNK", 1)
    assert delta_of(network) == whole > 0


def test_the_largest_component_counts():
    assert bounds_of(nx.disjoint_union(nx.cycle_graph(12), nx.cycle_graph(8))) == (3, 3, 6)


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ((nx.cycle_graph(8), nx.path_graph(8)), (2, 2, 7)),
        ((nx.cycle_graph(9), nx.complete_graph(9), nx.star_graph(8)), (1.5, 1.5, 4)),
        ((nx.grid_2d_graph(4, 4), nx.cycle_graph(16), nx.path_graph(16)), (4, 4, 15)),
    ],
)
def test_of_equally_large_components_no_order_of_the_nodes_chooses_one(networks, expected):
    every = [of_all_quadruples(nx.floyd_warshall_numpy(network)) for network in networks]
    for order in (networks, networks[::-1]):
        network = nx.disjoint_union_all([*order, nx.path_graph(3)])
        assert bounds_of(network) == expected
        mean, pm = mean_delta(adjacency_matrix(*of_networkx(network)))
        assert mean == pytest.approx(np.mean(every), abs=2 * pm)


def test_the_nodes_of_components_may_be_mixed():
    network = nx.disjoint_union_all([nx.cycle_graph(8), nx.path_graph(8), nx.cycle_graph(5)])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(network)).tolist()
        mixed = nx.relabel_nodes(network, dict(enumerate(order)))
        ordered = nx.Graph()
        ordered.add_nodes_from(range(len(mixed)))
        ordered.add_edges_from(mixed.edges)
        assert bounds_of(ordered) == (2, 2, 7)


@pytest.mark.parametrize(
    "network", [nx.path_graph(2), nx.path_graph(6), nx.cycle_graph(7), nx.grid_2d_graph(4, 4)]
)
def test_a_thousand_equal_components_take_seconds(network):
    """A copy's nodes are in any order, so that few of the copies have equal matrices."""
    generator, copies = np.random.default_rng(0), 1000
    edges, nodes = of_networkx(network)
    places = np.stack([generator.permutation(nodes) + nodes * copy for copy in range(copies)])
    many = torch.from_numpy(places)[:, edges].transpose(0, 1).flatten(1)
    start = time.perf_counter()
    found = hyperbolicity(many, nodes * copies)
    mean, _ = mean_delta(adjacency_matrix(many, nodes * copies))
    assert time.perf_counter() - start < 30
    assert found == bounds_of(network)
    every = of_all_quadruples(nx.floyd_warshall_numpy(network))
    assert mean == pytest.approx(every.mean() if len(every) else 0, abs=0.02)


@pytest.mark.parametrize("components", [1, 2, 30])
def test_the_interval_covers_the_mean_delta_of_large_components(components, monkeypatch):
    monkeypatch.setattr(module, "QUADRUPLES", 200)
    monkeypatch.setattr(module, "GROUPS", 5)
    monkeypatch.setattr(module, "GROUP_SIZE", 4)
    network = nx.cycle_graph(40)
    every = of_all_quadruples(nx.floyd_warshall_numpy(network))
    adjacency = adjacency_matrix(*of_networkx(nx.disjoint_union_all([network] * components)))
    found = [mean_delta(adjacency, seed) for seed in range(40)]
    covered = np.mean([abs(mean - every.mean()) <= pm for mean, pm in found])
    assert covered >= 0.85


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


def test_the_mean_delta_is_that_of_all_quadruples():
    graph = nx.cycle_graph(8)
    every = of_all_quadruples(nx.floyd_warshall_numpy(graph))
    mean, pm = mean_delta(adjacency_matrix(*of_networkx(graph)))
    assert mean == pytest.approx(every.mean(), abs=3 * pm)
    assert 0 < pm < 0.02


def test_the_interval_of_the_mean_delta_covers_it(monkeypatch):
    """Drawn nodes count as well as drawn quadruples."""
    monkeypatch.setattr(module, "GROUP_SIZE", 4)
    monkeypatch.setattr(module, "QUADRUPLES", 200)
    graph = nx.random_labeled_tree(400, seed=0)
    graph.add_edges_from((i, i + 1) for i in range(150))
    adjacency = adjacency_matrix(*of_networkx(graph))
    distance = shortest_distances(adjacency, np.arange(400))
    truth = deltas(distance, *np.random.default_rng(0).integers(0, 400, (4, 1_000_000))).mean()
    found = [mean_delta(adjacency, seed) for seed in range(120)]
    covered = np.mean([abs(mean - truth) <= pm for mean, pm in found])
    assert 0.9 <= covered <= 0.99


def test_the_tail_has_the_exponent_of_a_zeta_law():
    degrees = np.random.default_rng(0).zipf(2.5, 200_000)
    assert tail_exponent(degrees[degrees > 2]) == pytest.approx(2.5, abs=0.1)
    assert tail_exponent(np.full(50, 4)) is None


def test_the_tail_begins_at_a_degree_that_there_is():
    """A tenth of 22 degrees begins between the second and the third largest."""
    degrees = np.array([1] * 19 + [2, 2, 3])
    assert tail_exponent(degrees) == pytest.approx(1 + 3 / np.log(np.array([2, 2, 3]) / 1.5).sum())


def test_facts_of_a_labelled_graph():
    edges, nodes = of_networkx(nx.path_graph(4))
    graph = Data(edge_index=edges, num_nodes=nodes, y=torch.tensor([0, 0, 1, 1]))
    facts = graph_facts(graph)
    assert (facts.nodes, facts.edges, facts.components) == (4, 3, 1)
    assert facts.homophily == pytest.approx(2 / 3)
    assert facts.chance_homophily == pytest.approx(0.5)
    assert (facts.delta, facts.diameter) == ((0, 0), 3)
    assert facts.curvature == pytest.approx(0)  # a line is flat
    assert sum(facts.curvature_counts) == 2

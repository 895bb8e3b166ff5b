"""Graph curvature against closed forms, against its definition, and on the real networks."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvlab.analysis import sectional_curvature as module
from curvlab.analysis.sectional_curvature import sectional_curvature
from curvlab.errors import UsageError
from curvlab.run.parts import named_source
from graphs import of_networkx


def curvature_of(network):
    return sectional_curvature(*of_networkx(network))


def by_definition(network):
    """All triples by node and pair of neighbours, from the printed sum with its weight."""
    result = []
    for m in sorted(network):
        near = nx.single_source_shortest_path_length(network, m)
        others = [a for a in near if a != m]
        for b, c in itertools.combinations(sorted(network[m]), 2):
            from_b = nx.single_source_shortest_path_length(network, b)
            from_c = nx.single_source_shortest_path_length(network, c)
            total = sum(
                (near[a] ** 2 + from_b[c] ** 2 / 4 - (from_b[a] ** 2 + from_c[a] ** 2) / 2)
                / (2 * near[a])
                for a in others
            )
            result.append(total / len(others))
    return np.array(result)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (nx.path_graph(3), 0),
        (nx.path_graph(9), 0),
        (nx.star_graph(3), -1 / 3),
        (nx.star_graph(4), -1 / 2),
        (nx.cycle_graph(4), 1 / 3),
        (nx.cycle_graph(5), 0.3125),
        (nx.cycle_graph(6), 0.2),
        (nx.complete_graph(4), 0.291667),
        (nx.balanced_tree(2, 2), -0.285714),
        (nx.Graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]), 0.040799),
    ],
)
def test_closed_forms_of_the_specification(network, expected):
    curvature = curvature_of(network)
    assert curvature.mean == pytest.approx(expected, abs=1e-6)
    assert curvature.per_triple.mean() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("length", [1, 5, 20])
def test_the_printed_sum_grows_with_the_graph(length):
    """Three paths from one node: without its weight, FPS-T's Eq. 12 grows with their length."""
    legs = [[0, *range(1 + i * length, 1 + (i + 1) * length)] for i in range(3)]
    network = nx.compose_all([nx.path_graph(leg) for leg in legs])
    assert curvature_of(network).per_triple.min() == pytest.approx(-1 / 3, abs=1e-6)
    ends = (0, legs[0][1], legs[1][1])
    m, b, c = (nx.single_source_shortest_path_length(network, end) for end in ends)
    printed = np.mean([m[a] ** 2 + b[ends[2]] ** 2 / 4 - (b[a] ** 2 + c[a] ** 2) / 2 for a in m])
    assert printed == pytest.approx(-length * (length + 1) / (3 * length + 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 14), st.floats(0.1, 0.9), st.integers(0, 10_000))
def test_every_triple_agrees_with_the_definition(nodes, probability, seed):
    network = nx.gnp_random_graph(nodes, probability, seed=seed)  # often of several components
    expected = by_definition(network)
    if len(expected) == 0:
        return
    curvature = curvature_of(network)
    np.testing.assert_allclose(curvature.per_triple, expected, atol=1e-5)
    assert curvature.mean == pytest.approx(expected.mean(), abs=1e-5)


def test_blocks_change_nothing(monkeypatch):
    network = nx.barabasi_albert_graph(80, 3, seed=0)
    whole = curvature_of(network).per_triple
    monkeypatch.setattr(module, "SOURCE_BLOCK", 7)
    monkeypatch.setattr(module, "ENTRIES_PER_CHUNK", 100)
    np.testing.assert_allclose(curvature_of(network).per_triple, whole, atol=1e-6)


def test_nodes_without_two_neighbours_have_no_curvature():
    per_node = curvature_of(nx.disjoint_union(nx.path_graph(3), nx.empty_graph(1))).per_node
    assert np.isnan(per_node).tolist() == [True, False, True, True]


def test_direction_duplicates_and_self_loops_do_not_matter():
    plain = sectional_curvature(torch.tensor([[0, 0, 0, 1], [1, 2, 3, 2]]), 4)
    messy = sectional_curvature(torch.tensor([[1, 0, 0, 3, 2, 1, 2], [0, 1, 2, 0, 2, 2, 1]]), 4)
    np.testing.assert_array_equal(plain.per_triple, messy.per_triple)


def test_graphs_without_triples_are_refused():
    with pytest.raises(UsageError, match="two neighbours"):
        sectional_curvature(torch.tensor([[0], [1]]), 4)
    with pytest.raises(UsageError, match="without edges"):
        sectional_curvature(torch.zeros(2, 0, dtype=torch.long), 4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "over_triples", "over_nodes"),
    [
        ("web_edu", -0.6267, 0.2949),
        ("facebook", -0.0835, 0.1533),
        ("power", -0.2804, 0.0170),
        ("bio_worm", -0.0320, 0.1192),
    ],
)
def test_averages_of_the_papers_networks(
    name, over_triples, over_nodes, mirror, tmp_path, monkeypatch
):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    graph = named_source(name, tmp_path).load()
    curvature = sectional_curvature(graph.edge_index, graph.num_nodes)
    assert curvature.mean == pytest.approx(over_triples, abs=5e-4)
    assert np.nanmean(curvature.per_node) == pytest.approx(over_nodes, abs=5e-4)

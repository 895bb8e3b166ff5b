"""What a graph looks like, against graphs whose numbers are known."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from curvlab.analysis import hyperbolicity
from curvlab.analysis.graph_facts import graph_facts, tail_exponent
from curvlab.analysis.hyperbolicity import adjacency_matrix, distances_from, mean_delta
from graphs import of_networkx


def deltas(distance, x, y, v, w):
    """Half the difference of the two largest sums of each quadruple."""
    pairs = [(x, y, v, w), (x, v, y, w), (x, w, y, v)]
    sums = np.sort([distance[a, b] + distance[c, d] for a, b, c, d in pairs], axis=0)
    return (sums[2] - sums[1]) / 2


def test_the_tail_has_the_exponent_of_a_zeta_law():
    degrees = np.random.default_rng(0).zipf(2.5, 200_000)
    assert tail_exponent(degrees[degrees > 2]) == pytest.approx(2.5, abs=0.1)
    assert tail_exponent(np.full(50, 4)) is None


def test_the_tail_begins_at_a_degree_that_there_is():
    """A tenth of 22 degrees begins between the second and the third largest."""
    degrees = np.array([1] * 19 + [2, 2, 3])
    assert tail_exponent(degrees) == pytest.approx(1 + 3 / np.log(np.array([2, 2, 3]) / 1.5).sum())


def test_the_mean_delta_is_that_of_all_quadruples():
    graph = nx.cycle_graph(8)
    every = deltas(nx.floyd_warshall_numpy(graph), *np.array(list(combinations(range(8), 4))).T)
    mean, pm = mean_delta(adjacency_matrix(*of_networkx(graph)))
    assert mean == pytest.approx(every.mean(), abs=3 * pm)
    assert 0 < pm < 0.02


def test_the_interval_of_the_mean_delta_covers_it(monkeypatch):
    """Drawn nodes count as well as drawn quadruples."""
    monkeypatch.setattr(hyperbolicity, "GROUP_SIZE", 4)
    monkeypatch.setattr(hyperbolicity, "QUADRUPLES", 200)
    graph = nx.random_labeled_tree(400, seed=0)
    graph.add_edges_from((i, i + 1) for i in range(150))
    adjacency = adjacency_matrix(*of_networkx(graph))
    distance = distances_from(adjacency, np.arange(400))
    truth = deltas(distance, *np.random.default_rng(0).integers(0, 400, (4, 1_000_000))).mean()
    found = [mean_delta(adjacency, seed) for seed in range(120)]
    covered = np.mean([abs(mean - truth) <= pm for mean, pm in found])
    assert 0.9 <= covered <= 0.99


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

"""Generated graphs have the geometry that their models promise."""

from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.utils import degree, to_networkx

from curvlab.data.datasets.geometric import FlatGraph, HyperbolicGraph, SphericalGraph
from curvlab.data.datasets.known_geometry import (
    BalancedTree,
    Grid,
    NoisyTree,
    RandomGeometric,
    RingOfTrees,
    SpherePoints,
)
from curvlab.data.datasets.random_points import RandomPoints
from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.datasets.synthetic_disease import SyntheticDisease
from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.errors import UsageError
from graphs import is_connected, is_simple

MODELS = (HyperbolicGraph, SphericalGraph, FlatGraph)
SEEDED = (
    *(NoisyTree, SpherePoints, RandomGeometric, SyntheticWeb, SyntheticDisease),
    partial(SyntheticLarge, num_nodes=300),
)
KNOWN = (BalancedTree, NoisyTree, SpherePoints, Grid, RandomGeometric, RingOfTrees)


def homophily(graph):
    return float((graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]).double().mean())


@pytest.mark.parametrize("model", [*MODELS, *KNOWN])
def test_one_simple_undirected_component(model):
    data = model().load()
    assert is_simple(data)
    assert is_connected(data)
    data.validate()


@pytest.mark.parametrize("model", [*MODELS, *SEEDED])
def test_the_seed_decides_and_nothing_else(model):
    np.random.seed(1)  # noqa: NPY002 - the global state, which must not matter
    first, again, other = (model(seed=seed).load() for seed in (3, 3, 4))
    assert torch.equal(first.edge_index, again.edge_index)
    assert not np.array_equal(first.edge_index, other.edge_index)
    if first.x is not None:
        assert torch.equal(first.x, again.x)
        assert torch.equal(first.y, again.y)


@pytest.mark.parametrize("model", MODELS)
def test_mean_degrees_are_the_ones_asked_for(model):
    options = {"num_nodes": 700, "mean_degree": 12.0}
    graphs = [model(**options, seed=seed).load() for seed in range(4)]
    assert np.mean([g.num_edges / g.num_nodes for g in graphs]) == pytest.approx(12, rel=0.06)
    assert np.mean([float(g.x.sum(1).mean()) for g in graphs]) == pytest.approx(8, rel=0.05)
    assert set(graphs[0].x.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("beta", [1.5, 4.0])
def test_probabilities_of_s1_are_the_published_ones_in_large_graphs(beta):
    """`mu = beta sin(pi / beta) / (2 pi k)` and `chi = R angle / (mu k_i k_j)`."""
    nodes, mean_degree = 2000, 4.0
    model = HyperbolicGraph(exponent=20.0, num_nodes=nodes, mean_degree=mean_degree, beta=beta)
    generator = np.random.default_rng(0)
    points = model.points(nodes, generator)
    i, j = np.triu_indices(nodes, k=1)
    turns = model.distances(points, points)[i, j]
    p = model.probabilities(turns, np.ones_like(turns), beta, mean_degree / (nodes - 1))
    mu = beta * np.sin(np.pi / beta) / (2 * np.pi * mean_degree)
    chi = nodes / (2 * np.pi) * (2 * np.pi * turns) / (mu * mean_degree**2)
    printed = 1 / (1 + chi**beta)
    near = printed > 0.05
    assert p[near] == pytest.approx(printed[near], rel=0.15)


def test_edges_are_a_fermi_function_of_hyperbolic_distance():
    """`chi = exp((r_i + r_j + 2 ln(angle / 2) - R) / 2)` with `r = R - 2 ln(kappa / kappa_min)`."""
    model = HyperbolicGraph(num_nodes=300, beta=2.0)
    generator = np.random.default_rng(0)
    points, kappa = model.points(300, generator), model.hidden_degrees(300, generator)
    i, j = np.triu_indices(300, k=1)
    angle = 2 * np.pi * model.distances(points, points)[i, j]
    p = model.probabilities(angle / (2 * np.pi), kappa[i] * kappa[j], 2.0, 8 / 299)
    r = -2 * np.log(kappa / kappa.min())
    x = r[i] + r[j] + 2 * np.log(angle / 2)
    energy = np.log(1 / p - 1)  # = beta (x - R) / 2
    slope, _ = np.polyfit(x, energy, 1)
    assert slope == pytest.approx(2.0 / 2, rel=1e-6)
    assert np.corrcoef(x, energy)[0, 1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("exponent", [2.3, 2.8, 3.5])
def test_the_tail_of_degrees_has_the_exponent(exponent):
    """Hill's estimator over the largest hidden degrees, and their mean of 1."""
    drawn = HyperbolicGraph(exponent=exponent).hidden_degrees(20000, np.random.default_rng(0))
    tail = np.sort(drawn)[-2000:]
    hill = 1 + 1 / np.log(tail / tail[0])[1:].mean()
    assert hill == pytest.approx(exponent, abs=0.2)
    least = (exponent - 2) / (exponent - 1)
    assert drawn.min() == pytest.approx(least, rel=1e-3)


def test_classes_and_features_follow_the_geometry_as_far_as_asked():
    homophilies = [
        np.mean([homophily(HyperbolicGraph(homophily=h, seed=s).load()) for s in range(4)])
        for h in (0.0, 2.0, 10.0)
    ]
    assert homophilies == sorted(homophilies)
    assert homophilies[0] == pytest.approx(0.25, abs=0.05)  # four classes
    assert homophilies[2] > 0.7

    def shared(correlation):
        """Features that neighbours share, against those that any two nodes share."""
        data = HyperbolicGraph(correlation=correlation, exponent=8.0, mean_degree=6.0).load()
        source, target = data.edge_index
        of_neighbours = (data.x[source] * data.x[target]).sum(1).mean()
        return float(of_neighbours / (data.x @ data.x.T).fill_diagonal_(0).mean())

    assert shared(1.0) > 2 * shared(0.5) > 2
    assert shared(0.0) == pytest.approx(1, abs=0.15)


def test_known_graphs_are_the_ones_that_they_say():
    tree = to_networkx(BalancedTree(branching=3, depth=3).load(), to_undirected=True)
    assert nx.is_isomorphic(tree, nx.balanced_tree(3, 3))
    assert nx.is_isomorphic(
        to_networkx(Grid(rows=4, columns=6).load(), to_undirected=True), nx.grid_2d_graph(4, 6)
    )
    noisy = NoisyTree(branching=3, depth=3, noise=0.25).load()
    assert noisy.num_edges // 2 == 39 + round(0.25 * 39)
    assert set(tree.edges) <= set(to_networkx(noisy, to_undirected=True).edges)
    ring = to_networkx(RingOfTrees().load(), to_undirected=True)
    assert (ring.number_of_nodes(), ring.number_of_edges()) == (120, 120)
    assert [len(cycle) for cycle in nx.cycle_basis(ring)] == [8]
    assert sorted(d for _, d in ring.degree) == [1] * 64 + [3] * 48 + [4] * 8
    sphere = SpherePoints(num_nodes=60).load()
    assert int(degree(sphere.edge_index[0]).min()) >= 5
    inside = RandomGeometric(num_nodes=2000).load()
    assert 7 < inside.num_edges / inside.num_nodes < 8


@pytest.mark.parametrize(("model", "beta", "least"), [(HyperbolicGraph, 1, 1), (FlatGraph, 1.5, 2)])
def test_what_makes_no_graph_is_refused(model, beta, least):
    with pytest.raises(UsageError, match=f"beta={beta} must be above {least}"):
        model(beta=beta)


def test_random_points_are_the_seeds_and_have_length_about_one():
    data = RandomPoints(400, 64, 3).load()
    assert data.x.norm(dim=-1).mean().item() == pytest.approx(1, abs=0.02)
    assert (data.x == RandomPoints(400, 64, 3).load().x).all()
    assert data.num_edges == 0

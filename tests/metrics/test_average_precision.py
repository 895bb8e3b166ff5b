"""Mean average precision against scikit-learn, by hand, and against a direct definition."""

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from curvlab.errors import UsageError
from curvlab.metrics.average_precision import mean_average_precision
from graphs import both_directions, of_networkx


def score(distance, edge_index, block=3):
    distance = torch.as_tensor(distance)
    result = mean_average_precision(
        lambda rows: distance[rows], edge_index, distance.shape[0], block
    )
    assert result.shape == ()
    return result.item()


def by_all_orders(distance, edge_index):
    """Mean over all orders of the other nodes, each sorted stably, so over all orders of ties."""
    nodes, precisions = len(distance), []
    edges = set(map(tuple, edge_index.T.tolist()))
    for u in sorted({u for u, v in edges if u != v}):
        others, values = [w for w in range(nodes) if w != u], []
        for order in permutations(others):
            hits = [(u, w) in edges for w in sorted(order, key=lambda w: distance[u][w])]
            found = np.cumsum(hits)[hits]
            values.append(np.mean(found / (np.flatnonzero(hits) + 1)))
        precisions.append(np.mean(values))
    return np.mean(precisions)


def star(nodes, hub=0):
    """Edges of a star."""
    leaves = [v for v in range(nodes) if v != hub]
    return both_directions([(hub, leaf) for leaf in leaves])


SPEC_POINTS = torch.tensor([[0, 0], [1, 0.1], [0.2, 1.9], [2.1, 2.0], [0.6, 1.1]])
SPEC_EDGES = both_directions([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]])


def random_graph(seed):
    return of_networkx(nx.gnp_random_graph(40, 0.15, seed=seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn_without_ties(seed, dtype):
    edge_index, nodes = random_graph(seed)
    distance = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    neighbour = torch.zeros(nodes, nodes, dtype=torch.bool)
    neighbour[edge_index[0], edge_index[1]] = True
    expected = []
    for u in np.flatnonzero(neighbour.any(dim=1)):
        others = np.arange(nodes) != u
        expected.append(average_precision_score(neighbour[u][others], -distance[u][others]))
    assert score(distance, edge_index, 7) == pytest.approx(np.mean(expected), abs=1e-6)


@st.composite
def tied_problems(draw):
    nodes = draw(st.integers(2, 6))
    pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    # Few distinct values, so that ties abound, and asymmetric, so that rows and columns differ.
    values = draw(st.lists(st.integers(-1, 3), min_size=nodes**2, max_size=nodes**2))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    distance = torch.tensor(values, dtype=dtype).reshape(nodes, nodes)
    return distance, both_directions(edges), draw(st.integers(1, 10))


@settings(max_examples=60, deadline=None)
@given(tied_problems())
def test_is_the_mean_over_all_orders_of_ties(problem):
    distance, edge_index, block = problem
    expected = by_all_orders(distance.tolist(), edge_index)
    assert score(distance, edge_index, block) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("hub", [0, 30, 59])
def test_a_star_of_equal_points_has_the_harmonic_number(hub):
    """The hub finds all; a leaf finds the hub at one of 59 ranks, each as likely."""
    expected = (sum(1 / rank for rank in range(1, 60)) + 1) / 60
    assert score(torch.zeros(60, 60), star(60, hub), 7) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("nodes", [50, 400])
def test_large_groups_of_ties_agree_with_drawn_orders(nodes):
    """Ties of hundreds of nodes, against the mean of many drawn orders and its standard error."""
    edge_index, _ = of_networkx(nx.barabasi_albert_graph(nodes, 3, seed=0))
    rng = np.random.default_rng(0)
    distance = rng.integers(0, 4, (nodes, nodes)).astype(float)
    drawn = [
        score(distance + rng.random((nodes, nodes)) / 2, edge_index, nodes) for _ in range(100)
    ]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert score(distance, edge_index, 64) == pytest.approx(np.mean(drawn), abs=4 * error)


def test_ties_are_equal_but_for_the_rounding_of_double_precision():
    """The order of nodes whose distances differ in the last digits does not count."""
    distance = torch.ones(60, 60, dtype=torch.float64)
    noise = torch.rand(60, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = score(distance, star(60))
    assert score(distance * (1 + 1e-15 * noise), star(60)) == pytest.approx(expected, abs=1e-7)
    apart = distance.clone()
    apart[:, 0] -= 1e-9
    assert score(apart, star(60)) == 1


def test_order_and_duplicates_of_edges_and_self_loops_do_not_matter():
    edge_index, nodes = random_graph(0)
    distance = torch.rand(nodes, nodes)
    shuffled = edge_index[:, torch.randperm(edge_index.shape[1])]
    loops = torch.arange(nodes).expand(2, -1)
    messy = torch.cat([shuffled, loops, shuffled[:, :9]], dim=1)
    assert score(distance, messy) == score(distance, edge_index)


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_distances_that_are_not_finite_give_nan_never_a_score(broken):
    distance = torch.cdist(SPEC_POINTS, SPEC_POINTS)
    distance[3, 1] = broken
    assert np.isnan(score(distance, SPEC_EDGES))


def test_no_block_is_larger_than_asked():
    edge_index, nodes = random_graph(0)
    seen = []

    def rows(indices):
        seen.append(indices)
        return torch.zeros(len(indices), nodes)

    mean_average_precision(rows, edge_index, nodes, block=16)
    assert [len(indices) for indices in seen] == [16, 16, 8]
    assert torch.equal(torch.cat(seen), torch.arange(nodes))


def test_a_graph_without_edges_is_refused():
    with pytest.raises(UsageError, match="without edges"):
        score(torch.zeros(3, 3), torch.zeros(2, 0, dtype=torch.long))

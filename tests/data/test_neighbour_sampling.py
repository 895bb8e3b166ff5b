"""Sampled neighbourhoods: what is in them, and that sums over them are right in the mean."""

from itertools import combinations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph, to_undirected

from curvlab.data.loaders.neighbour_batches import NeighbourDataModule
from curvlab.data.loaders.subgraphs import Subgraphs, distinct_integers
from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.layers.graph_convolutions import MeanSAGE
from graphs import Given, random_graph


@pytest.fixture
def graph():
    """Sixty nodes, a hub among them, and one without neighbours."""
    edges = torch.randint(60, (2, 150))
    hub = torch.stack([torch.zeros(40, dtype=torch.long), torch.arange(10, 50)])
    edges = torch.cat([edges, hub], dim=1)
    edges = to_undirected(edges[:, edges[0] != edges[1]])
    x = torch.randn(61, 4)
    return Data(x=x, y=torch.arange(61), edge_index=edges, num_nodes=61)


def degrees(graph):
    return torch.bincount(graph.edge_index[1], minlength=graph.num_nodes)


def test_subsets_are_distinct_in_range_and_uniform():
    drawn = distinct_integers(torch.full((60_000,), 5), 2).sort(1).values
    assert bool((drawn[:, 0] < drawn[:, 1]).all())
    counts = torch.stack(
        [(drawn == torch.tensor(pair)).all(1).sum() for pair in combinations(range(5), 2)]
    )
    assert counts.sum() == 60_000  # nothing but the ten pairs
    expected = 6_000
    # Chi-square with nine degrees of freedom, exceeded once in a thousand times.
    assert ((counts - expected) ** 2 / expected).sum() < 27.9
    everything = distinct_integers(torch.tensor([3, 3]), 3)
    assert everything.sort(1).values.tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("fan_outs", [[3], [5, 2], [2, 2, 2]])
def test_a_sample_is_a_part_of_the_graph(graph, fan_outs):
    seeds = torch.tensor([7, 0, 60, 31])
    sample = Subgraphs(graph).sample(seeds, fan_outs)
    assert sample.batch_size == 4
    assert torch.equal(sample.nodes[:4], seeds)
    assert sample.nodes.unique().numel() == sample.num_nodes
    assert torch.equal(sample.y, sample.nodes)
    assert torch.equal(sample.x, graph.x[sample.nodes])
    drawn = {tuple(edge) for edge in sample.nodes[sample.edge_index].T.tolist()}
    assert len(drawn) == sample.num_edges  # none twice
    assert drawn <= {tuple(edge) for edge in graph.edge_index.T.tolist()}


def test_a_node_has_as_many_neighbours_as_its_hop_allows_and_no_more(graph):
    seeds = torch.tensor([7, 0, 60, 31])
    sample = Subgraphs(graph).sample(seeds, [3, 2])
    drawn = torch.bincount(sample.edge_index[1], minlength=sample.num_nodes)
    all_of_them = degrees(graph)[sample.nodes]
    assert torch.equal(drawn[:4], all_of_them[:4].clamp(max=3))
    first_hop = torch.zeros(sample.num_nodes, dtype=torch.bool)
    first_hop[sample.edge_index[0][sample.edge_index[1] < 4]] = True
    first_hop[:4] = False
    assert torch.equal(drawn[first_hop], all_of_them[first_hop].clamp(max=2))
    last = ~first_hop
    last[:4] = False
    assert not drawn[last].any()
    assert drawn[2] == 0  # of node 60


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_with_large_fan_outs_it_is_the_neighbourhood_and_the_network_is_exact(graph, hops):
    seeds = torch.tensor([7, 0, 60, 31])
    fan_outs = [int(degrees(graph).max())] * hops
    sample = Subgraphs(graph).sample(seeds, fan_outs)
    nodes, *_ = k_hop_subgraph(seeds, hops, graph.edge_index, num_nodes=61)
    inner, *_ = k_hop_subgraph(seeds, hops - 1, graph.edge_index, num_nodes=61)
    assert torch.equal(sample.nodes.sort().values, nodes)
    assert sample.num_edges == degrees(graph)[inner].sum()
    layers = [MeanSAGE(4, 4) for _ in range(hops)]
    whole, part = graph.x, sample.x
    for layer in layers:
        whole = layer(whole, graph.edge_index).tanh()
        part = layer(part, sample.edge_index).tanh()
    torch.testing.assert_close(part[:4], whole[seeds])


@pytest.mark.nightly
def test_the_mean_over_drawn_neighbours_is_unbiased(graph):
    """And its variance that of draws without replacement, `s^2 / k (1 - k / d)`."""
    subgraphs = Subgraphs(graph)
    means = []
    for _ in range(4000):
        sample = subgraphs.sample(torch.tensor([0]), [3])
        means.append(sample.x[sample.edge_index[0]].mean(0))
    means = torch.stack(means)
    neighbours = graph.x[graph.edge_index[0][graph.edge_index[1] == 0]]
    variance = neighbours.var(0) / 3 * (1 - 3 / len(neighbours))
    bound = 4 * (variance / 4000).sqrt()
    assert bool(((means.mean(0) - neighbours.mean(0)).abs() < bound).all())
    torch.testing.assert_close(means.var(0), variance, rtol=0.12, atol=0)


def test_directions_are_kept():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    assert Subgraphs(graph).sample(torch.tensor([0]), [5]).num_edges == 0
    sample = Subgraphs(graph).sample(torch.tensor([2]), [5, 5])
    assert sample.nodes.tolist() == [2, 1, 0]
    assert sample.edge_index.tolist() == [[1, 2], [0, 1]]


def module(transforms=()):
    """Batches of ten of fifty nodes, of which every other one is a training node."""
    graph = random_graph(nodes=50, pairs=120, features=3)
    graph.y, graph.train_mask = torch.arange(50) % 4, torch.arange(50) % 2 == 0
    options = {"transforms": list(transforms), "steps_per_epoch": 1, "seed": 0}
    return NeighbourDataModule(
        fan_outs=(3, 2), size=10, accumulate=1, source=Given(graph), **options
    )


@pytest.mark.parametrize("batches", [1, 2])
def test_a_pass_takes_every_training_node_once(batches):
    made = module()
    for number in range(3):
        rounds = made.rounds(number, batches)
        assert all(len(parts) == batches for parts in rounds)
        parts = [part for parts in rounds for part in parts]
        assert max(map(len, parts)) <= 10
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(0, 50, 2))
    assert not torch.equal(made.rounds(0, 1)[0][0], made.rounds(1, 1)[0][0])
    assert torch.equal(made.rounds(1, 1)[0][0], module().rounds(1, 1)[0][0])


def test_a_batch_has_its_training_nodes_first():
    made = module()
    (nodes,) = made.rounds(0, 1)[0]
    batch = made.batch(nodes)
    assert torch.equal(batch.nodes[batch.train_nodes], nodes)
    assert torch.equal(batch.y[batch.train_nodes], nodes % 4)
    assert torch.equal(batch.x, made.graph.x[batch.nodes])
    assert "train_mask" not in batch


def test_matrices_are_those_of_the_drawn_edges():
    made = module(transforms=[SparseAdjacency(self_loops=False), ShortestPaths(5)])
    batch = made.batch(torch.tensor([4, 8, 30]))
    dense = torch.zeros(batch.num_nodes, batch.num_nodes)
    dense[batch.edge_index[1], batch.edge_index[0]] = 1
    assert torch.equal(batch.adj_t.to_dense(), dense)
    assert torch.equal(batch.hops == 1, dense.T.bool().fill_diagonal_(False))

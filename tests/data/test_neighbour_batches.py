"""Batches of sampled neighbourhoods: whose loss a pass is of, and what a batch carries."""

import pytest
import torch

from curvlab.data.loaders.neighbour_batches import NeighbourDataModule
from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.data.transforms.shortest_paths import ShortestPaths
from graphs import Given, random_graph


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

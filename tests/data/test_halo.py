"""Parts of a graph's nodes, and the rows that processes hold of it."""

import pytest
import torch

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.loaders.halo import HaloDataModule
from curvlab.data.loaders.node_parts import SLACK, greedy_parts, random_parts
from curvlab.data.splits.nodes import RandomSplit
from curvlab.data.transforms.graph import NormalisedAdjacency, SparseAdjacency
from curvlab.errors import UsageError

PROCESSES = 3


def module(num_nodes=301, transforms=(), **options):
    return HaloDataModule(
        source=SyntheticLarge(num_nodes, mean_degree=6.0 if num_nodes > 6 else 1.0, classes=3),
        transforms=list(transforms),
        split=RandomSplit("random", 0.25, 0.25, False, 0),
        **options,
    )


@pytest.mark.parametrize("partition", ["greedy", "random"])
@pytest.mark.parametrize("transform", [NormalisedAdjacency(), SparseAdjacency(self_loops=True)])
def test_rows_of_all_processes_are_the_graph(partition, transform):
    """The block's columns are the halo's nodes: put back, they are the rows of the matrix."""
    data = module(transforms=[transform], partition=partition)
    (name,) = transform.writes
    dense = data.graph[name].to_dense()
    part = data._parts(data.graph[name], PROCESSES)
    shards = [data.rows(rank, PROCESSES) for rank in range(PROCESSES)]
    own = [(part == rank).nonzero().squeeze(-1) for rank in range(PROCESSES)]
    for rank, shard in enumerate(shards):
        matrix = shard[name]
        sent = [s[name].sent.split(s[name].sends) for s in shards]
        halo = [own[other][sent[other][rank]] for other in range(PROCESSES)]
        assert [len(nodes) for nodes in halo] == matrix.receives
        columns = torch.cat([own[rank], *halo])
        assert torch.equal(matrix.block.to_dense(), dense[own[rank]][:, columns])
        others = torch.ones(len(dense), dtype=torch.bool).index_fill(0, columns, False)
        assert not dense[own[rank]][:, others].any()
        assert torch.equal(shard.x, data.graph.x[own[rank]])
        assert torch.equal(shard.train_nodes, shard.train_mask.nonzero().squeeze(-1))
    assert sum(len(s.train_nodes) for s in shards) == shards[0].all_train_nodes


def test_what_is_fetched_is_what_the_benchmark_counts():
    data = module(transforms=[SparseAdjacency()])
    matrix = data.graph.adj_t
    part = data._parts(matrix, PROCESSES)
    reader = part.repeat_interleave(matrix.crow_indices().diff())
    column = matrix.col_indices()
    others = reader != part[column]
    pairs = torch.stack([reader[others], column[others]]).unique(dim=1)
    counted = torch.bincount(pairs[0], minlength=PROCESSES)
    received = [sum(data.rows(rank, PROCESSES).adj_t.receives) for rank in range(PROCESSES)]
    assert counted.tolist() == received


def test_random_parts_differ_by_one_node():
    sizes = torch.bincount(random_parts(101, 4, seed=1))
    assert sizes.tolist() == [26, 25, 25, 25]


@pytest.mark.parametrize("parts", [2, 7])
def test_greedy_parts_find_communities_and_have_room(parts):
    nodes, size = 2000, 20
    generator = torch.Generator().manual_seed(0)
    group = torch.randperm(nodes, generator=generator) // size
    order = group.argsort()
    neighbours = order.view(-1, size)[group].reshape(-1)  # of each node, its whole community
    offsets = torch.arange(0, nodes * size + 1, size)
    part = greedy_parts(offsets, neighbours, parts, seed=0)
    assert int(torch.bincount(part, minlength=parts).max()) <= SLACK * nodes / parts + 1
    here = part.repeat_interleave(size) == part[neighbours]
    assert here.float().mean() > 0.9
    assert torch.equal(part, greedy_parts(offsets, neighbours, parts, seed=0))


def test_a_process_without_nodes_is_refused():
    with pytest.raises(UsageError, match="4 nodes leave one of 5 processes without any"):
        module(4, partition="random").rows(0, 5)

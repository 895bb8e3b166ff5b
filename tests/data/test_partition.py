"""Mini-batches are induced subgraphs of disjoint parts that together are the graph."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.loaders import batches
from curvlab.data.loaders.batches import PartitionDataModule, random_rounds
from curvlab.data.loaders.subgraphs import Subgraphs
from curvlab.data.splits.nodes import PARTS, RandomSplit
from curvlab.data.transforms.graph import NormalisedAdjacency, SparseAdjacency
from curvlab.errors import UsageError
from curvlab.run.reporting import quiet


def source(num_nodes=300):
    return SyntheticLarge(num_nodes, 6.0, classes=3, homophily=0.7, features=4)


def graph(num_nodes=300, directed=False):
    data = source(num_nodes).load()
    if directed:
        keep = torch.rand(data.num_edges) < 0.5
        order = torch.randperm(int(keep.sum()))
        data.edge_index = data.edge_index[:, keep][:, order]
    data.edge_weight = torch.arange(data.num_edges) + 0.5
    data.original = torch.arange(num_nodes)
    return data


def module(num_nodes=300, size=50, seed=0, steps=4, transforms=(), val=0.25, workers=0):
    return PartitionDataModule(
        size=size,
        accumulate=1,
        workers=workers,
        source=source(num_nodes),
        transforms=list(transforms),
        steps_per_epoch=steps,
        seed=seed,
        split=RandomSplit(val=val, test=0.25, stratified=False, draw=0),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.integers(1, 50), st.integers(1, 4), st.integers(0, 99))
def test_parts_are_disjoint_their_union_is_all_and_none_is_larger_than_the_size(
    nodes, size, batches, number
):
    parts = batches * -(-nodes // (size * batches))
    if parts > nodes:
        with pytest.raises(UsageError, match="use larger ones, fewer processes"):
            random_rounds(nodes, size, batches, 0, number)
        return
    rounds = random_rounds(nodes, size, batches, 0, number)
    assert all(len(round_) == batches for round_ in rounds)
    found = [part for round_ in rounds for part in round_]
    assert len(found) == parts
    sizes = [len(part) for part in found]
    assert max(sizes) <= size
    assert min(sizes) >= max(1, max(sizes) - 1)
    assert torch.equal(torch.cat(found).sort().values, torch.arange(nodes))


@pytest.mark.parametrize("seed", [0, 7])
def test_a_pass_does_not_repeat_the_permutation_of_a_split_with_the_same_seed(seed):
    data = graph()
    train = RandomSplit(val=0.25, test=0.25, stratified=False, draw=seed)(data, 0).train_mask
    rounds = random_rounds(300, 50, 1, seed, 0)
    shares = [float(train[part].float().mean()) for (part,) in rounds]
    assert all(0.2 < share < 0.8 for share in shares)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_subgraph_is_the_one_of_the_dense_adjacency_in_any_order(directed, seed):
    data = graph(directed=directed)
    dense = to_dense_adj(data.edge_index, edge_attr=data.edge_weight, max_num_nodes=300)[0]
    nodes = torch.randperm(300, generator=torch.Generator().manual_seed(seed))[:120]
    part = Subgraphs(data, []).induced_edges(nodes)
    found = to_dense_adj(part.edge_index, edge_attr=part.edge_weight, max_num_nodes=120)[0]
    assert torch.equal(found, dense[nodes][:, nodes])
    assert part.num_nodes == 120
    for name in ("x", "y", "original"):
        assert torch.equal(part[name], data[name][nodes])


def test_nodes_without_neighbours_and_empty_sets_are_graphs_too():
    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[1, 3], [3, 1]]), num_nodes=4)
    lookup = Subgraphs(data, []).induced_edges
    assert lookup(torch.tensor([2, 0])).edge_index.shape == (2, 0)
    assert lookup(torch.tensor([3, 0, 1])).edge_index.tolist() == [[0, 2], [2, 0]]
    assert lookup(torch.tensor([], dtype=torch.long)).num_nodes == 0


def test_matrices_are_made_anew_with_the_degrees_of_the_subgraph():
    data, transforms = graph(), [SparseAdjacency(self_loops=False), NormalisedAdjacency(False)]
    del data.edge_weight
    for transform in transforms:
        data = transform(data)
    nodes = torch.arange(0, 300, 3)
    part = Subgraphs(data, transforms).induced_edges(nodes)
    dense = to_dense_adj(data.edge_index, max_num_nodes=300)[0][nodes][:, nodes]
    scale = dense.sum(1).clamp(min=1).rsqrt()
    assert torch.equal(part.adj_t.to_dense(), dense.T)
    torch.testing.assert_close(part.normalised_adj.to_dense(), scale[:, None] * dense * scale)
    assert torch.equal(data.adj_t.to_dense().sum(), torch.tensor(float(data.num_edges)))


def test_a_matrix_that_nobody_can_make_anew_is_refused():
    data = SparseAdjacency(self_loops=False)(graph())
    with pytest.raises(UsageError, match="rebuild adj_t"):
        Subgraphs(data, [])


def test_batches_go_on_from_window_to_window_through_the_passes():
    """Six parts a pass in windows of four: the parts of a pass are in two windows."""
    data = module()
    windows = [list(data.train_dataloader()) for _ in range(3)]
    batches = [batch for window in windows for batch in window]
    assert [len(window) for window in windows] == [4, 4, 4]
    everything = data.graph.x
    for number in range(2):
        rows = torch.cat([batch.x for batch in batches[6 * number : 6 * (number + 1)]])
        assert len(rows) == 300
        assert torch.equal(rows.unique(dim=0), everything.unique(dim=0))
    assert not torch.equal(batches[0].x, batches[6].x)


def test_a_batch_knows_its_training_nodes_and_no_others():
    data = module()
    seen = 0
    for batch in (*data.train_dataloader(), *data.train_dataloader()):
        assert not any(part in batch for part in PARTS)
        rows = (batch.x[:, None] == data.graph.x).all(-1).int().argmax(1)
        expected = data.graph.train_mask[rows].nonzero().squeeze(-1)
        assert torch.equal(batch.train_nodes, expected)
        assert torch.equal(batch.y, data.graph.y[rows])
        seen += len(expected)
    assert seen > 150


def test_batches_without_training_nodes_are_skipped():
    data = module(size=10, val=0.745, steps=60)
    train = int(data.graph.train_mask.sum())
    assert train <= 3
    batches = list(data.train_dataloader())
    assert all(len(batch.train_nodes) for batch in batches)
    rounds = data.rounds(0, batches=1)
    assert 1 <= len(rounds) <= train
    assert sum(int(data.graph.train_mask[part].sum()) for (part,) in rounds) == train
    pairs = data.rounds(0, batches=2)
    assert all(any(data.graph.train_mask[part].any() for part in parts) for parts in pairs)


@pytest.mark.slow
def test_shared_memory_without_room_for_queues_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "SHARED_MEMORY", tmp_path)
    for free, refused in ((4096, True), (3 * 2**16 - 1, True), (3 * 2**16, False)):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(batches.shutil, "disk_usage", lambda _, usage=usage: usage)
        batches.check_shared_memory(0)
        if refused:
            with pytest.raises(UsageError, match=r"enlarge it .*batching.workers=0"):
                batches.check_shared_memory(2)
        else:
            batches.check_shared_memory(2)
    monkeypatch.setattr(batches, "SHARED_MEMORY", tmp_path / "none")  # as on other systems
    batches.check_shared_memory(2)


def test_workers_make_the_same_batches_and_draw_nothing():
    """Two windows of four steps, of passes of six; the second goes on where the first ended."""
    alone, helped = (module(transforms=[SparseAdjacency()], workers=n) for n in (0, 2))
    for _ in range(2):
        before = torch.get_rng_state()
        with quiet():
            pairs = zip(alone.train_dataloader(), list(helped.train_dataloader()), strict=True)
        for one, other in pairs:
            assert one.keys() == other.keys()
            for name in ("edge_index", "x", "y", "train_nodes"):
                assert torch.equal(one[name], other[name])
            assert torch.equal(one.adj_t.to_dense(), other.adj_t.to_dense())
        assert torch.equal(torch.get_rng_state(), before)
        assert alone.state_dict() == helped.state_dict()


@pytest.mark.parametrize("val", [0.25, 0.74])
def test_a_process_keeps_its_own_batches_of_the_rounds_of_all(val):
    """With few training nodes some rounds have none and are left out, by all alike."""
    data = module(size=10, val=val)
    data.accumulate, data._rank, data._processes = 2, 1, 2
    for parts in data.rounds(0, 4):
        assert all(map(torch.equal, parts[2:], data.next_round()))


def test_it_evaluates_on_the_whole_graph_and_cuts_from_another_copy():
    data = module()
    (whole,) = data.val_dataloader()
    whole = data.transfer_batch_to_device(whole, torch.device("cpu"), 0)
    assert whole.chunk == data.size
    assert whole is data.evaluation_batch(next(iter(data.train_dataloader())))
    assert torch.equal(whole.edge_index, data.graph.edge_index)
    on_meta = data.transfer_batch_to_device(data.graph, torch.device("meta"), 0)
    assert on_meta.x.device.type == "meta"
    assert data.graph.x.device.type == "cpu"
    assert "chunk" not in data.graph


def test_rows_from_parts_are_in_the_order_of_the_nodes():
    data = module(transforms=[])
    data.evaluation = "parts"
    nodes = torch.tensor([250, 3, 17, 299, 4])
    batch = data.evaluation_batch(data.batch(torch.arange(5)))
    found = batch.evaluate_parts(lambda part, rows: part.x[rows], nodes, torch.device("cpu"))
    assert torch.equal(found, data.graph.x[nodes])

"""The data module prepares one graph once, checks it, and hands out that very object."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.files.cleaning import check_graph, simple_edges
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.data.splits.nodes import PARTS, RandomSplit
from curvlab.data.transforms.graph import IdentityFeatures, LaplacianEigenvectors
from curvlab.errors import UsageError
from graphs import Given


class CountingSource(SyntheticWeb):
    loads = 0

    def load(self):
        self.loads += 1
        return super().load()


def module(seed=0, **options):
    source = CountingSource(60, 0.5, seed=0)
    transforms = [LaplacianEigenvectors(4), IdentityFeatures(0.02)]
    return GraphDataModule(source, transforms, steps_per_epoch=5, seed=seed, **options)


def test_loaders_yield_the_very_same_graph():
    data = module()
    batches = [*data.train_dataloader(), *data.val_dataloader(), *data.test_dataloader()]
    assert len(batches) == 5 + 1 + 1
    assert all(batch is data.graph for batch in batches)
    assert len(data.train_dataloader()) == 5
    assert data.source.loads == 1


def test_noise_follows_the_runs_seed_and_leaves_the_global_generator_alone():
    torch.manual_seed(1)
    first = module(seed=0).graph.x
    after = torch.rand(1)
    torch.manual_seed(2)
    assert torch.equal(first, module(seed=0).graph.x)
    assert not torch.equal(first, module(seed=1).graph.x)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(1))


def test_noise_does_not_depend_on_what_the_cache_held(tmp_path):
    first = module(cache_dir=tmp_path).graph
    second = module(cache_dir=tmp_path).graph
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.eigenvectors, second.eigenvectors)
    assert torch.equal(first.x, module().graph.x)


def test_the_graph_moves_once_and_then_stays():
    data = module()
    device = torch.device("meta")
    moved = data.transfer_batch_to_device(data.graph, device, 0)
    assert moved is data.graph
    assert data.graph.x.device == device
    storage = data.graph.x
    assert data.transfer_batch_to_device(data.graph, device, 0).x is storage


EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0).long()), "empty"),
        (Data(x=torch.zeros(4, 3), edge_index=torch.zeros(2, 0).long()), "empty"),
        (Data(edge_index=EDGES, num_nodes=2), "no node features"),
        (Data(x=torch.zeros(3, 3), edge_index=EDGES + 2, num_nodes=3), "outside 0 ... 2"),
        (Data(x=torch.zeros(3, 3), edge_index=EDGES, num_nodes=2), "3 rows"),
        (Data(x=torch.tensor([[0.0], [torch.nan]]), edge_index=EDGES), "the first is node 1"),
        (Data(x=torch.tensor([[torch.inf], [0.0]]), edge_index=EDGES), "NaN or infinite"),
        (Data(x=torch.zeros(2, 3), edge_index=EDGES, y=torch.tensor([0, 1, 0])), "3 labels"),
        (Data(x=torch.zeros(2, 3), edge_index=EDGES, y=torch.tensor([1, 1])), "of class 1"),
        (Data(x=torch.zeros(2, 3), edge_index=EDGES, y=torch.tensor([0, -1])), "is node 1"),
        (Data(x=torch.zeros(2, 3), edge_index=EDGES, y=torch.tensor([[0.0], [2.0]])), "0 and 1"),
        (Data(x=torch.zeros(2, 3), edge_index=EDGES, y=torch.tensor([[torch.nan], [1]])), "node 0"),
    ],
)
def test_unusable_graphs_are_refused(data, words):
    with pytest.raises(UsageError, match=words):
        check_graph(data)


def labelled_module(y, seed=0, stratified=True, **options):
    """Sixty nodes with these labels; two of them have no neighbour."""
    data = SyntheticWeb(58, 0.5, seed=0).load()
    data.num_nodes, data.y = 60, y
    split = RandomSplit(stratified=stratified)
    transforms = [IdentityFeatures(0.0), LaplacianEigenvectors(4)]
    return GraphDataModule(Given(data), transforms, 5, seed, split=split, **options)


THREE = torch.arange(60) % 3


def test_the_split_follows_the_runs_seed_and_has_isolated_nodes_too():
    first, again, other = (labelled_module(THREE, seed).graph for seed in (0, 0, 1))
    for part in PARTS:
        assert torch.equal(first[part], again[part])
        assert not torch.equal(first[part], other[part])
    assert sum(first[part].int() for part in PARTS).tolist() == [1] * 60
    assert first.eigenvectors.shape == (60, 4)


SEVERAL = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]).repeat(30, 1)


@pytest.mark.parametrize(
    ("y", "one_logit", "classes", "multi_label"),
    [
        (THREE, False, 3, False),
        (THREE % 2, False, 2, False),
        (THREE % 2, True, 1, False),
        (SEVERAL, False, 3, True),
        (SEVERAL, True, 3, True),
    ],
)
def test_number_of_logits(y, one_logit, classes, multi_label):
    module = labelled_module(y, one_logit=one_logit, stratified=False)
    assert module.num_classes == classes
    assert module.multi_label is multi_label


def test_one_logit_for_three_classes_and_no_labels_are_refused():
    with pytest.raises(UsageError, match="one logit cannot tell 3 classes"):
        _ = labelled_module(THREE, one_logit=True).num_classes
    with pytest.raises(UsageError, match="no labels"):
        _ = labelled_module(None).graph
    with pytest.raises(UsageError, match="no labels"):
        _ = module().num_classes


def test_simple_edges_are_pytorch_geometrics():
    edges = torch.randint(20, (2, 100), generator=torch.Generator().manual_seed(0))
    expected = to_undirected(remove_self_loops(edges)[0], num_nodes=20)
    assert torch.equal(simple_edges(edges, 20), expected)
    assert simple_edges(torch.tensor([[1], [1]]), 3).shape == (2, 0)

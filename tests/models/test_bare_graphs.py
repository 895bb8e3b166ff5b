"""As a library: a model built with its defaults takes a bare graph, and says what it cannot do."""

import copy
import importlib
import inspect

import pytest
import torch
from torch.optim.swa_utils import AveragedModel
from torch_geometric.data import Data

from composing import composed, different_models, target_of, tasks_of
from curvlab.config.schema import options_of
from curvlab.cpp import use_kernels
from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.transforms.graph import LaplacianEigenvectors
from curvlab.data.transforms.spectrum import EigenvectorFeatures
from curvlab.errors import UsageError
from curvlab.models import FPST, LDS
from curvlab.models.encoder import Encoder
from curvlab.run.parts import DataSpec, build_encoder, build_transforms
from drawn import assert_finite
from modes import LargestTensor

NODES, FEATURES, CLASSES = 40, 8, 3
OF_GRAPHS = [name for name in different_models() if set(tasks_of(name)) != {"kg_completion"}]
TARGETS = sorted({target_of(name) for name in OF_GRAPHS})


SIGNED = (LaplacianEigenvectors, EigenvectorFeatures)


@pytest.fixture
def bare() -> Data:
    """Features, classes and edges, as any data set of PyTorch Geometric has them."""
    edges = SyntheticWeb(num_nodes=NODES, cycle_fraction=0.5, seed=0).load().edge_index
    return Data(x=torch.randn(NODES, FEATURES), edge_index=edges, y=torch.arange(NODES) % CLASSES)


def made(target: str, graph: Data, **options: float) -> Encoder:
    """A model with its defaults, but for the options."""
    module, _, name = target.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    asked = inspect.signature(kind).parameters
    given = {"in_channels": FEATURES, "num_classes": CLASSES, "graph": graph}
    return kind(**{k: v for k, v in given.items() if k in asked}, **options)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_with_its_defaults_embeds_a_bare_graph_and_computes_what_it_needs_once(
    target, bare, monkeypatch
):
    model = made(target, bare).eval()
    before = set(bare.keys())
    points = model(bare)
    assert points.shape == (NODES, model.dim_out)
    assert torch.isfinite(points).all()
    assert model.dim_out == CLASSES or not model.gives_logits
    kept = {name: bare[name] for name in set(bare.keys()) - before}
    needed = {name for transform in model.transforms for name in transform.writes}
    assert set(kept) == needed

    def computed(*_):
        raise AssertionError

    for transform in model.transforms:
        monkeypatch.setattr(type(transform), "forward", computed)
    model(bare)
    assert all(bare[name] is value for name, value in kept.items())


@pytest.fixture
def trained(bare, request) -> Encoder:
    """A model after a step on the graph, most of whose features are 0."""
    bare.x = torch.eye(NODES, FEATURES)
    bare.inner_mask = bare.train_mask = torch.arange(NODES) < 9
    model = made(request.param, bare)
    model(bare).sum().backward()
    return model.eval()


def features_in_place(graph: Data) -> None:
    graph.x[3] = torch.arange(FEATURES)


def other_features(graph: Data) -> None:
    graph.x = graph.x.roll(1, 0)


def other_edges(graph: Data) -> None:
    graph.edge_index = (graph.edge_index + 7) % NODES


def a_copy_with_other_edges(graph: Data) -> Data:
    graph = graph.clone()
    other_edges(graph)
    return graph


@pytest.mark.parametrize("trained", TARGETS, indirect=True)
@pytest.mark.parametrize(
    "edit", [features_in_place, other_features, other_edges, a_copy_with_other_edges]
)
def test_an_edited_graph_is_embedded_as_a_new_one(trained, bare, edit):
    trained(bare)
    edited = edit(bare) or bare
    new = Data(x=edited.x.clone(), edge_index=edited.edge_index.clone(), y=bare.y)
    assert torch.equal(trained(edited), copy.deepcopy(trained)(new))
    assert torch.equal(trained(edited), trained(edited.clone()))


@pytest.mark.parametrize("trained", TARGETS, indirect=True)
def test_a_model_is_copied_and_averaged_after_a_step(trained, bare):
    points = trained(bare)
    average = AveragedModel(trained)
    average.update_parameters(trained)
    for other in (copy.deepcopy(trained), average):
        assert torch.equal(other(bare), points)


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # looked up by the compiler
@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("trained", [t for t in TARGETS if not t.endswith("FPST")], indirect=True)
def test_a_compiled_model_and_its_gradient_are_the_models(trained, bare):
    compiled = torch.compile(trained, backend="eager")
    weights = [weight for weight in trained.parameters() if weight.grad is not None]
    with use_kernels("plain"):  # as compiled code has
        points, expected = compiled(bare), trained(bare)
        torch.testing.assert_close(points, expected)
        gradients = (torch.autograd.grad(y.square().sum(), weights) for y in (points, expected))
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
        other_features(bare)
        torch.testing.assert_close(compiled(bare), trained(bare))


@pytest.mark.parametrize("target", [t for t in TARGETS if not t.endswith("LDS")])  # rows of nodes
def test_nodes_in_another_order_are_embedded_alike(target, bare):
    order = torch.randperm(NODES)
    edges = order.argsort()[bare.edge_index]
    moved = Data(x=bare.x[order].double(), edge_index=edges, y=bare.y[order])
    bare.x = bare.x.double()
    model = made(target, bare).double().eval()
    if any(isinstance(transform, SIGNED) for transform in model.transforms):
        pytest.skip("the signs of eigenvectors depend on the order")
    torch.testing.assert_close(model(moved), model(bare)[order])


@pytest.mark.parametrize("target", TARGETS)
def test_sparse_features_give_what_dense_ones_give(target, bare):
    bare.x = torch.eye(NODES, FEATURES).double()
    model = made(target, bare).double().eval()
    points = model(bare)
    dense = bare.clone()
    dense.x = bare.x.clone().requires_grad_()  # goes the ordinary way
    torch.testing.assert_close(points, model(dense))


@pytest.mark.parametrize("target", TARGETS)
def test_a_graph_of_one_node_is_trained_on(target):
    none = torch.empty(2, 0, dtype=torch.long)
    mask = torch.tensor([True])
    alone = Data(x=torch.ones(1, FEATURES), edge_index=none, y=torch.zeros(1, dtype=torch.long))
    alone.inner_mask = alone.train_mask = mask
    model = made(target, alone)
    assert_finite(model(alone), model.parameters())


@pytest.mark.parametrize("target", TARGETS)
def test_half_precision_trains(target, bare):
    bare.inner_mask = bare.train_mask = torch.arange(NODES) < 9
    model = made(target, bare)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(bare).float().square().mean()
    assert_finite(loss, model.parameters())


@pytest.mark.parametrize("target", [t for t in TARGETS if "dropout" in options_of(t)])
def test_dropout_acts_in_training_only(target, bare):
    bare.inner_mask = bare.train_mask = torch.arange(NODES) < 9  # LDS trains on both
    model = made(target, bare, dropout=0.5)
    assert not torch.equal(model(bare), model(bare))
    model.eval()
    assert torch.equal(model(bare), model(bare))


@pytest.mark.parametrize("target", [t for t in TARGETS if t.endswith(("NodeFormer", "SGFormer"))])
def test_memory_is_linear_in_the_nodes(target):
    nodes = 6000
    edges = torch.randint(nodes, (2, 3 * nodes))
    large = Data(x=torch.randn(nodes, FEATURES), edge_index=edges, num_nodes=nodes)
    model = made(target, large, dim=4)
    with LargestTensor() as largest:
        model.training_loss(large, lambda embedded: embedded.square().sum()).backward()
    assert largest.elements < nodes**2 / 8


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", OF_GRAPHS)
def test_a_run_gives_a_model_what_it_computes_itself(name, bare):
    """A run prepares the graph by the same transforms as the model, with the same options."""
    config = composed(f"model={name}")
    taken = {"num_classes": CLASSES, "classes": CLASSES, "graph": bare, "steps_per_pass": 1}
    model = build_encoder(config, DataSpec({"inputs": {"in_channels": FEATURES}, "taken": taken}))
    prepared = [transform.cache_key for transform in build_transforms(config)]
    assert len(prepared) == len(set(prepared))  # none of them twice
    assert {transform.cache_key for transform in model.transforms} <= set(prepared)


SELF_LOOPS = {
    ("lrn", "chameleon"): False,
    ("lrn", "squirrel"): False,
    ("hybonet", "squirrel"): False,
    ("lrn", "airport"): True,
    ("hypformer", "ogbn_arxiv"): True,
    ("hypformer_softmax", "newsgroups20__k5"): True,
    ("hypformer", "cora"): False,
}
"""Whether a node is its own neighbour in published settings (docs/protocol.md)."""


@pytest.mark.parametrize(("name", "dataset"), SELF_LOOPS)
def test_a_published_setting_is_in_the_constructors_options_alone(name, dataset, bare):
    config = composed(f"model={name}", f"dataset={dataset}")
    assert "requires" not in config.model
    model = build_encoder(config, DataSpec({"inputs": {"in_channels": FEATURES}, "taken": {}}))
    (transform,) = model.transforms
    assert transform.self_loops == SELF_LOOPS[name, dataset]
    assert build_transforms(config)[-1].cache_key == transform.cache_key
    matrix = transform(bare)[transform.writes[0]].to_dense()
    assert bool((matrix.diagonal() > 0).all()) == SELF_LOOPS[name, dataset]


def test_arguments_are_named_as_where_they_were_written():
    with pytest.raises(UsageError, match=r"^heads=3 does not divide dim=8; 1, 2, 4, 8 do$"):
        FPST(FEATURES, dim=8, heads=3)
    config = composed("model=fpst", "model.dim=8", "model.heads=3")
    known = DataSpec({"inputs": {"in_channels": FEATURES}, "taken": {}})
    says = r"^model\.heads=3 does not divide model\.dim=8; 1, 2, 4, 8 do$"
    with pytest.raises(UsageError, match=says):
        build_encoder(config, known)


def test_models_are_imported_by_their_names():
    for name in different_models():  # those of knowledge graphs too
        module, _, model = target_of(name).rpartition(".")
        if module.startswith("curvlab.models"):
            kind = getattr(importlib.import_module("curvlab.models"), model)
            assert getattr(importlib.import_module(module), model) is kind
            assert kind.__module__ == module
            assert model in dir(importlib.import_module("curvlab.models"))
    with pytest.raises(ImportError, match="NoModel"):
        from curvlab.models import NoModel  # noqa: F401


def test_a_graph_without_features_is_one_sentence(bare):
    bare.x = None
    with pytest.raises(UsageError, match=r"no features: set data\.x"):
        FPST(FEATURES)(bare)


def test_lds_says_what_it_learns_from(bare):
    with pytest.raises(UsageError, match=r"apply curvlab\.data\.splits\.halved_validation"):
        LDS(FEATURES, CLASSES, bare)(bare)

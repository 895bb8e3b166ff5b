"""Models called as modules: `model(x, edge_index)` beside `model(data)`, and what is refused."""

import copy
import gc

import pytest
import torch
from test_bare_graphs import FEATURES, NODES, TARGETS, bare, made
from torch_geometric.data import Data
from torch_geometric.nn import ChebConv, GCNConv, SGConv

from curvlab.errors import UsageError
from curvlab.graph import inputs
from curvlab.models import CAT, FPST, GAT, GCN, MLP, SGC, ChebNet, Hypformer, RotH

__all__ = ["bare"]  # a fixture


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_takes_features_and_edges_as_it_takes_the_graph(target, bare):
    model = made(target, bare).eval()
    points = model(bare.x, bare.edge_index)
    assert torch.equal(points, copy.deepcopy(model)(bare))
    bare.x = bare.x.roll(1, 0)
    new = Data(x=bare.x.clone(), edge_index=bare.edge_index.clone(), y=bare.y)
    assert torch.equal(model(bare.x, bare.edge_index), model(new))
    bare.edge_index.copy_((bare.edge_index + 7) % NODES)
    new = Data(x=bare.x.clone(), edge_index=bare.edge_index.clone(), y=bare.y)
    assert torch.equal(model(bare.x, bare.edge_index), model(new))


def test_what_a_model_derives_of_edges_is_computed_once_and_freed_with_them(bare, monkeypatch):
    x, edges = bare.x, bare.edge_index
    del bare.edge_index
    small, large = FPST(FEATURES, eigenvectors=3).eval(), FPST(FEATURES, eigenvectors=5).eval()
    before = len(inputs._GRAPHS)
    first = small(x, edges)
    assert large(x, edges).shape == first.shape
    for model in (small, large):
        for transform in model.transforms:
            monkeypatch.setattr(type(transform), "forward", None)
    assert torch.equal(small(x, edges), first)
    large(x, edges)
    del edges
    gc.collect()
    assert len(inputs._GRAPHS) == before


def test_gradients_reach_the_features(bare):
    x = bare.x.clone().requires_grad_()
    GCN(FEATURES)(x, bare.edge_index).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("model", "layer"),
    [
        (GCN, GCNConv(FEATURES, 16)),
        (SGC, SGConv(FEATURES, 16, K=1)),
        (ChebNet, ChebConv(FEATURES, 16, K=3)),
    ],
)
def test_weights_of_edges_are_those_of_pytorch_geometric(model, layer, bare):
    ours = model(FEATURES).eval()
    layer.load_state_dict(ours.layers[0].state_dict())
    edge_weight = torch.rand(bare.num_edges) + 0.1
    expected = layer(bare.x, bare.edge_index, edge_weight)
    found = ours(bare.x, bare.edge_index, edge_weight)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found, ours(bare.x, bare.edge_index), atol=1e-3)


def test_weights_of_edges_count_where_the_adjacency_is_normalised(bare):
    model = Hypformer(FEATURES).eval()
    weight = torch.rand(bare.num_edges) + 0.1
    weighted = Data(x=bare.x, edge_index=bare.edge_index, edge_weight=weight)
    assert torch.equal(model(bare.x, bare.edge_index, weight), model(weighted))
    assert not torch.equal(model(bare.x, bare.edge_index), model(weighted))


X, EDGES = torch.randn(5, FEATURES), torch.tensor([[0, 1, 2], [1, 2, 0]])
REFUSED = {
    "no edges": ((X,), "GCN needs edges next to x"),
    "no tensor": ((X.numpy(), EDGES), "GCN takes a graph .* not ndarray"),
    "a vector": ((X[0], EDGES), r"x is \[8\]: give a tensor \[nodes, in_channels\]"),
    "another width": ((X[:, :3], EDGES), "built with in_channels=8: build it with in_channels=3"),
    "whole numbers": ((X.long(), EDGES), r"x is int64: .* x\.float\(\)"),
    "double": ((X.double(), EDGES), r"x is float64 and the model float32"),
    "edges as a list": ((X, [[0], [1]]), "GCN needs edges next to x: .* not list"),
    "transposed": ((X, torch.tensor([[0, 1], [1, 2], [2, 0]])), r"use edge_index\.T"),
    "edges of floats": ((X, EDGES.float()), r"edge_index is float32: .* edge_index\.long\(\)"),
    "an adjacency": ((X, torch.eye(5)), r"edge_index is \[5, 5\]: give \[2, edges\]"),
    "no such node": ((X, EDGES + 3), "edge_index names node 5, and x has 5 rows"),
    "a negative node": ((X, EDGES - 1), "edge_index names node -1"),
    "few weights": ((X, EDGES, torch.ones(2)), "one floating-point number per edge, .3."),
    "weights of shape [3, 1]": ((X, EDGES, torch.ones(3, 1)), r"edge_weight is \[3, 1\]"),
    "a graph and edges": ((Data(x=X, edge_index=EDGES), EDGES), "edges of its own"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_inputs_are_refused_in_one_sentence(case):
    arguments, says = REFUSED[case]
    with pytest.raises(UsageError, match=says) as refused:
        GCN(FEATURES)(*arguments)
    assert "\n" not in str(refused.value)


def test_a_graph_is_checked_as_its_tensors_are():
    with pytest.raises(UsageError, match="in_channels=7"):
        GCN(7)(Data(x=X, edge_index=EDGES))


def test_weights_are_refused_by_models_that_do_not_use_them():
    with pytest.raises(UsageError, match="GAT does not use edge weights"):
        GAT(FEATURES)(X, EDGES, torch.ones(3))


def test_a_network_of_features_needs_no_edges():
    model = MLP(FEATURES).eval()
    assert torch.equal(model(X), model(X, EDGES))


def test_a_scorer_of_triples_says_what_it_takes():
    with pytest.raises(UsageError, match="RotH scores triples: call it with"):
        RotH(5, 2)(X, EDGES)
    assert CAT(in_channels=FEATURES).eval()(X, EDGES).shape == (5, 64)

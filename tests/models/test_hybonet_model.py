"""HyboNet and LRN: the specification's counts, residual forms, symmetries, depth."""

from functools import partial

import numpy as np
import pytest
import torch

from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.layers import LorentzResidual
from curvlab.layers.lorentz import OPERATORS
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models import LRN, HyboNet
from graphs import random_graph

pytestmark = pytest.mark.usefixtures("float64")


def model(features=4, *, kappa=-1.0, learnable=False, operator=None, seed=0, **options):
    """HyboNet, or with an operator LRN."""
    torch.manual_seed(seed)
    manifold = partial(Lorentz, kappa, learnable)
    options = {"dim": 5, "layers": 3, **options}
    if operator is None:
        return HyboNet(features, manifold, **options)
    chosen = {k: options.pop(k) for k in ("weights", "weight_x", "form") if k in options}
    residual = partial(LorentzResidual, operator=operator, **chosen)
    return LRN(features, manifold, residual, **options)


def graph(self_loops=True):
    """A random graph, three of whose nodes are alone, one without features."""
    data = random_graph(30, 40, 4, alone=3)
    data.x[4] = 0
    data = SparseAdjacency(self_loops)(data)
    data.adj_t = data.adj_t.to(data.x.dtype)
    return data


@pytest.mark.parametrize(
    ("features", "layers", "expected"),
    [(1433, 3, 23507), (11, 3, 755), (11, 2, 482), (12, 3, 771), (500, 3, 8579)],
)
def test_parameter_counts_of_link_prediction(features, layers, expected):
    """Of Cora, Disease (LRN, HyboNet), Airport, PubMed: the specification's."""
    encoder = model(features, dim=15, layers=layers, operator="centroid")
    assert sum(p.numel() for p in encoder.parameters()) == expected
    learned = model(features, dim=15, layers=layers, operator="centroid", weights="learned")
    assert sum(p.numel() for p in learned.parameters()) == expected + layers - 1
    curved = model(features, dim=15, layers=layers, learnable=True)
    assert sum(p.numel() for p in curved.parameters()) == expected + 1


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_layers_input_is_added_to_its_output(operator):
    data, encoder = graph(), model(kappa=-0.7, operator=operator, layers=2)
    aggregate = encoder.aggregate
    first = aggregate(data.adj_t, encoder.features(data.x))
    second = aggregate(data.adj_t, encoder.linears[0](first))
    expected = LorentzResidual(encoder.space, operator)(first, second)
    torch.testing.assert_close(encoder(data), expected)
    encoder.skip_mode = "aggregate_all"
    backwards = LorentzResidual(encoder.space, operator)(second, first)
    torch.testing.assert_close(encoder(data), backwards)


def test_aggregating_all_layers_is_one_centroid_with_the_weights_of_the_connections():
    data = graph()
    encoder = model(operator="centroid", weight_x=0.5, layers=4, skip_mode="aggregate_all")
    points = [encoder.aggregate(data.adj_t, encoder.features(data.x))]
    for linear in encoder.linears:
        points.append(encoder.aggregate(data.adj_t, linear(points[-1])))
    weights = torch.tensor([2.0, 2.0, 2.0, 1.0])
    expected = lorentz.centroid(torch.stack(points, 1), weights, -1.0)
    torch.testing.assert_close(encoder(data), expected)


@pytest.mark.parametrize("c", [0.5, 1.25, 2.0])
def test_lrns_c_is_minus_one_over_kappa(c):
    """Layers whose points have `<x, x> = -c`, as in LRN's current code, by NumPy.

    time `sigmoid(h_0) e^scale + sqrt(c) + 0.5`, space as long as `sqrt(time^2 - c)`; sums over
    `sqrt(-<u, u> / c)`.
    """
    made, data = model(kappa=-1 / c, layers=2), graph()
    data.x[4] = 1  # without features it would have no direction
    layers = [made.features, *made.linears]
    weights = [{k: v.detach().numpy() for k, v in p.named_parameters()} for p in layers]
    adjacency = data.adj_t.to_dense().numpy()
    s = data.x.numpy()
    norm = np.linalg.norm(s, axis=1, keepdims=True)
    a = norm / c**0.5
    x = np.concatenate([c**0.5 * np.cosh(a), s * np.sinh(a) / a], 1)
    metric = np.diag([-1.0] + 5 * [1.0])
    for w in weights:
        h = x @ w["weight"].T + w["bias"]
        time = np.exp(w["point.log_scale"]) / (1 + np.exp(-h[:, :1])) + c**0.5 + 0.5
        length = np.linalg.norm(h[:, 1:], axis=1, keepdims=True)
        y = np.concatenate([time, h[:, 1:] * np.sqrt(time**2 - c) / length], 1)
        u = adjacency @ y
        x = u / np.sqrt(-((u @ metric) * u).sum(1, keepdims=True) / c)
    np.testing.assert_allclose(((x @ metric) * x).sum(1), -c)
    np.testing.assert_allclose(made(data).detach().numpy(), x, rtol=1e-9)


@pytest.mark.parametrize(("operator", "silent"), [("centroid", True), (None, False)])
def test_the_first_layer_is_activated_in_lrn_alone(operator, silent):
    """Negative features are nothing to a ReLU; at the start time has no weight either."""
    encoder = model(operator=operator, activation="relu")
    points = encoder.features(-torch.rand(5, 4) - 0.1)
    at_origin = torch.isclose(points, lorentz.origin(5, -1.0).expand(5, -1), atol=1e-5)
    assert bool(at_origin.all()) is silent


@pytest.mark.parametrize("operator", [None, "centroid"])
@pytest.mark.parametrize("self_loops", [False, True])
def test_self_loops_decide_whether_a_node_is_its_own_neighbour(operator, self_loops):
    """Of a bare graph; heterophilous graphs have none in the published settings."""
    bare = random_graph(30, 40, 4, alone=3)
    encoder = model(operator=operator, self_loops=self_loops)
    torch.testing.assert_close(encoder(bare), encoder(graph_of(bare, self_loops)))
    other = encoder(graph_of(bare, not self_loops))
    assert not torch.allclose(encoder(bare), other)


def graph_of(bare, self_loops):
    data = SparseAdjacency(self_loops)(bare.clone())
    data.adj_t = data.adj_t.to(data.x.dtype)
    return data

"""Specformer, NAGphormer, the plain transformer, and networks that filter after a perceptron."""

from functools import partial

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.data.transforms.spectrum import EigenvectorFeatures, LaplacianSpectrum
from curvlab.errors import UsageError
from curvlab.layers.spectral_filters import BernsteinFilter, GPRFilter
from curvlab.models.graph_transformers import NodeTransformer
from curvlab.models.nagphormer import NAGphormer, token_encoder_layer
from curvlab.models.specformer import LargeSpecformer, Specformer
from curvlab.models.spectral import MLPThenFilter
from graphs import random_graph


@pytest.fixture
def graph():
    return random_graph(30, 60, 6, seed=5)


def laplacian(graph):
    adjacency = NormalisedAdjacency(False)(graph.clone()).normalised_adj.to_dense()
    return torch.eye(30) - adjacency


def test_the_spectrum_is_that_of_the_laplacian(graph):
    data = LaplacianSpectrum(None, 0)(graph)
    u, values = data.spectrum_vectors, data.spectrum_values
    torch.testing.assert_close(u @ torch.diag(values) @ u.T, laplacian(graph), atol=1e-5, rtol=0)
    torch.testing.assert_close(u.T @ u, torch.eye(30), atol=1e-5, rtol=0)
    assert (values.diff() >= 0).all()
    ends = LaplacianSpectrum(4, 3)(graph.clone())
    torch.testing.assert_close(
        ends.spectrum_values, torch.cat([values[:4], values[-3:]]), atol=1e-5, rtol=1e-5
    )
    product = laplacian(graph) @ ends.spectrum_vectors
    torch.testing.assert_close(
        product, ends.spectrum_vectors * ends.spectrum_values, atol=1e-5, rtol=1e-4
    )


def test_all_eigenvalues_of_a_large_graph_are_refused():
    edges = torch.tensor([[0, 1], [1, 0]])
    large = Data(edge_index=edges, x=torch.ones(30_000, 1), num_nodes=30_000)
    with pytest.raises(UsageError, match="ask for some by"):
        LaplacianSpectrum(None, 0)(large)


def enlarge(model):
    """Weights so large that the network is far from linear."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)


@torch.no_grad()
def test_specformer_filters_by_its_heads(graph):
    model = Specformer(6, 8, 1, 2, 0.0, 0.0, 0.0, logits=True, classes=3).eval()
    enlarge(model)
    data = LaplacianSpectrum(None, 0)(graph)
    u, filters, weight = (
        data.spectrum_vectors,
        model.filters(data.spectrum_values),
        model.weights[0],
    )
    x = model.second(torch.relu(model.first(data.x)))
    expected = weight[0] * x
    for head in range(2):
        expected = expected + weight[1 + head] * (u @ torch.diag(filters[:, head]) @ u.T @ x)
    torch.testing.assert_close(model(data), expected, atol=1e-5, rtol=1e-4)
    assert model.gives_logits


@torch.no_grad()
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_large_specformer_normalises_what_its_heads_filter(graph, norm):
    model = LargeSpecformer(6, 8, 2, 2, norm, 0.0, 0.0, 0.0)
    enlarge(model)
    data = LaplacianSpectrum(None, 0)(graph)
    u, filters = data.spectrum_vectors, model.filters(data.spectrum_values)
    x = data.x @ model.input.weight.T + model.input.bias
    for weight, part in zip(model.weights, model.norms, strict=True):
        bases = torch.stack([x, *(u @ torch.diag(f) @ u.T @ x for f in filters.T)])
        x = (weight.unsqueeze(1) * bases).sum(0)
        axis = 1 if norm == "layer" else 0  # over the width, or over the nodes
        mean, variance = x.mean(axis, keepdim=True), x.var(axis, correction=0, keepdim=True)
        x = ((x - mean) / (variance + 1e-5).sqrt() * part.weight + part.bias).relu()
    torch.testing.assert_close(model(data), x, atol=1e-4, rtol=1e-3)
    assert not model.gives_logits
    assert model.dim_out == 8


@torch.no_grad()
def test_nagphormer_reads_hops_against_the_node(graph):
    model = NAGphormer(6, "mono", 3, 8, 1, 2, 0.0, eigenvectors=2).eval()
    data = EigenvectorFeatures(2)(graph.clone())
    torch.testing.assert_close(data.inputs[:, :6], graph.x)
    torch.testing.assert_close(data.inputs[:, 6:].norm(dim=0), torch.ones(2))
    data = PolynomialTokens("mono", 3, True, "float32", 8, False, "inputs")(data)
    whole = model(data)
    torch.testing.assert_close(model(graph.clone()), whole)  # it makes its tokens itself
    torch.testing.assert_close(model(NormalisedAdjacency()(data.clone())), whole)
    assert whole.shape == (30, 4) == (30, model.dim_out)
    nodes = torch.tensor([3, 29])
    torch.testing.assert_close(model.forward_nodes(data, nodes), whole[nodes])
    nn.init.normal_(model.attention.weight)
    x = model.norm(model.layers[0](model.project_tokens(data).transpose(0, 1)))
    for v in (0, 7):
        pairs = [torch.cat([x[v, 0], x[v, k]]) for k in (1, 2, 3)]
        weights = torch.cat([model.attention(pair) for pair in pairs]).softmax(0)
        mixed = x[v, 0] + sum(w * x[v, k] for w, k in zip(weights, (1, 2, 3), strict=True))
        torch.testing.assert_close(model(data)[v], torch.relu(model.output(mixed)))


@torch.no_grad()
def test_the_plain_transformer_sees_all_nodes_and_no_edge(graph):
    model = NodeTransformer(6, 8, 2, 2, 0.0).eval()
    alone = Data(x=graph.x.clone())
    before = model(alone)
    torch.testing.assert_close(model(graph), before)
    alone.x[0] += 1
    assert not torch.allclose(model(alone)[1:], before[1:])


def perceptron(classes=None, **options):
    filter_of = partial(GPRFilter, 4, 0.1)
    chosen = {"filter": filter_of, "filter_lr": None, "filter_weight_decay": 0.0, **options}
    return MLPThenFilter(
        6, dim=8, layers=2, dropout=0.0, filter_dropout=0.0, logits=True, classes=classes, **chosen
    )


@torch.no_grad()
def test_perceptron_before_the_filter(graph):
    data = NormalisedAdjacency(True)(graph)
    model = perceptron(3)
    assert (model.gives_logits, model.dim_out) == (True, 3)
    y = model.maps[0](torch.relu(model.input(graph.x)))
    torch.testing.assert_close(model(data), model.filter(y, data.normalised_adj))
    assert (perceptron().gives_logits, perceptron().dim_out) == (False, 8)


def test_parameter_counts_of_the_filter_experiment():
    """The specification's 5,049 at width 69, with a linear map of the embeddings to one number."""
    model = MLPThenFilter(1, partial(BernsteinFilter, 10), 69, 2, 0.0, 0.0, 0.01, 0.0)
    assert sum(p.numel() for p in model.parameters()) + 70 == 5049


def gradients(module, tokens):
    """Output of a module and gradients of its square, of the tokens and of all parameters."""
    module.zero_grad()
    x = tokens.clone().requires_grad_()
    out = module(x)
    return out, torch.autograd.grad(out.square().sum(), [x, *module.parameters()])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("training", [True, False])
def test_the_layer_is_the_pre_norm_encoder_layer(training, heads):
    options = {"batch_first": True, "norm_first": True}
    theirs = nn.TransformerEncoderLayer(8, heads, 16, 0.0, "gelu", **options)
    for parameter in theirs.train(training).parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = token_encoder_layer(8, heads, 0.0).train(training)
    ours.load_state_dict(theirs.state_dict())
    tokens = torch.randn(5, 4, 8)
    torch.testing.assert_close(gradients(ours, tokens), gradients(theirs, tokens))
    with torch.no_grad():  # in which torch has a path of its own
        torch.testing.assert_close(ours(tokens), theirs(tokens))

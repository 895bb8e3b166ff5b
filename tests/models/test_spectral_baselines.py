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
from curvlab.models.nagphormer import NAGphormer
from curvlab.models.specformer import Specformer
from curvlab.models.specformer_large import LargeSpecformer
from curvlab.models.spectral import FilteredPerceptron
from curvlab.models.transformer import NodeTransformer
from curvlab.optim import parameter_groups
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


def test_some_eigenvectors_lose_what_lies_along_the_others(graph):
    """Not even the filter of ones, which changes nothing, is one of a truncated spectrum."""
    u = LaplacianSpectrum(None, 0)(graph.clone()).spectrum_vectors
    some = LaplacianSpectrum(4, 3)(graph.clone()).spectrum_vectors
    lost = u[:, 4:-3]
    assert (lost - some @ (some.T @ lost)).norm() > 0.99 * lost.norm()
    torch.testing.assert_close(u @ (u.T @ lost), lost, atol=1e-5, rtol=0)


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


def test_specformer_starts_its_linear_maps_small():
    torch.manual_seed(0)
    model = Specformer(60, 64, 2, 2, 0.0, 0.0, 0.0)
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            assert not part.bias.any(), name
            # four standard errors of the estimate
            spread = 4 / (2 * part.weight.numel()) ** 0.5
            assert part.weight.std().item() == pytest.approx(0.01, rel=spread), name
    xavier = (2 / (64 + 3 * 64)) ** 0.5
    assert model.block.self_attn.in_proj_weight.std().item() == pytest.approx(xavier, rel=0.05)


@torch.no_grad()
def test_specformer_drops_out_what_its_perceptron_makes(graph):
    torch.manual_seed(0)
    data = LaplacianSpectrum(None, 0)(graph)
    model = Specformer(6, 8, 1, 2, 0.0, 0.5, 0.0).train()
    model.weights = nn.ParameterList()
    nn.init.constant_(model.first.bias, 10.0)
    nn.init.normal_(model.second.weight)
    hidden = []
    model.second.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
    dropped = (model(data) == 0).float().mean()
    assert (hidden[0] > 0).all()
    assert 0.35 < dropped < 0.65


@torch.no_grad()
def test_specformer_drops_out_each_of_its_bases_alone(graph):
    torch.manual_seed(0)
    data = LaplacianSpectrum(None, 0)(graph)
    model = Specformer(6, 8, 1, 2, 0.0, 0.0, 0.5)
    nn.init.normal_(model.second.weight)
    nn.init.ones_(model.decoder.bias)
    nn.init.zeros_(model.decoder.weight)  # filters of ones, so that all three bases are the same
    once, dropped = model.eval()(data) / 3, model.train()(data)
    kept = (dropped / once).round()
    torch.testing.assert_close(kept * once, dropped, atol=1e-5, rtol=1e-4)
    assert kept.unique().tolist() == [0, 2, 4, 6]


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


def test_large_specformer_starts_as_its_authors_code():
    torch.manual_seed(0)
    model = LargeSpecformer(60, 64, 2, 2, "layer", 0.0, 0.0, 0.0)
    for weight in (*model.weights, model.input.weight, model.decoder.weight):
        assert weight.std().item() == pytest.approx(0.01, rel=4 / (2 * weight.numel()) ** 0.5)
    assert not model.input.bias.any()


@torch.no_grad()
def test_large_specformer_drops_out_features_bases_and_embeddings(graph):
    torch.manual_seed(0)
    data = LaplacianSpectrum(None, 0)(graph)
    data.x = torch.ones(30, 6)
    model = LargeSpecformer(6, 64, 1, 2, "layer", 0.0, 0.5, 0.0).train()
    model.weights, model.norms = nn.ParameterList(), nn.ModuleList()
    nn.init.constant_(model.input.weight, 1.0)
    embeddings = model(data)
    assert embeddings.div(2.0).round().mul(2.0).equal(embeddings)  # sums of 0 and 2, times 0 or 2
    assert (embeddings == 0).float().mean() == pytest.approx(0.5, abs=0.1)
    assert embeddings.max(dim=1).values.unique().numel() > 1


@torch.no_grad()
def test_nagphormer_reads_hops_against_the_node(graph):
    model = NAGphormer(8, "mono", 3, 8, 1, 2, 0.0).eval()
    data = EigenvectorFeatures(2)(graph)
    torch.testing.assert_close(data.x[:, 6:].norm(dim=0), torch.ones(2))
    data = PolynomialTokens("mono", 3, True, "float32", 8, False)(data)
    whole = model(data)
    assert whole.shape == (30, 4) == (30, model.dim_out)
    nodes = torch.tensor([3, 29])
    torch.testing.assert_close(model.of_nodes(data, nodes), whole[nodes])
    nn.init.normal_(model.attention.weight)
    x = model.norm(model.layers[0](model.projected(data).transpose(0, 1)))
    for v in (0, 7):
        pairs = [torch.cat([x[v, 0], x[v, k]]) for k in (1, 2, 3)]
        weights = torch.cat([model.attention(pair) for pair in pairs]).softmax(0)
        mixed = x[v, 0] + sum(w * x[v, k] for w, k in zip(weights, (1, 2, 3), strict=True))
        torch.testing.assert_close(model(data)[v], torch.relu(model.output(mixed)))


@pytest.mark.parametrize("layers", [1, 4])
def test_nagphormer_starts_all_its_linear_maps_alike(layers):
    torch.manual_seed(0)
    model = NAGphormer(40, "mono", 3, 64, layers, 8, 0.1)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" not in name:
            # four standard errors of the estimate
            spread = 4 / (2 * parameter.numel()) ** 0.5
            assert parameter.std().item() == pytest.approx(0.02 / layers**0.5, rel=spread), name


def test_nagphormer_drops_nothing_inside_the_feed_forward_part():
    torch.manual_seed(0)
    layer = NAGphormer(6, "mono", 3, 8, 1, 2, 0.5).train().layers[0]
    hidden = []
    layer.linear2.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
    layer(torch.randn(5, 4, 8))
    assert (hidden[0] != 0).all()
    assert (layer.dropout1.p, layer.dropout2.p, layer.self_attn.dropout) == (0.5, 0.5, 0.5)


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
    return FilteredPerceptron(
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
    model = FilteredPerceptron(1, partial(BernsteinFilter, 10), 69, 2, 0.0, 0.0, 0.01, 0.0)
    assert sum(p.numel() for p in model.parameters()) + 70 == 5049


def test_coefficients_learn_apart():
    model = perceptron(filter_lr=0.5)
    _, own = parameter_groups(model, curvature_lr=1.0, weight_decay=0.1)
    assert (own["lr"], own["weight_decay"]) == (0.5, 0.0)
    assert [id(p) for p in own["params"]] == [id(model.filter.gamma)]

"""Filters against the spectrum, PyTorch Geometric and their definitions."""

from math import comb

import pytest
import torch
from torch_geometric.nn import APPNP

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.layers.spectral_filters import BernsteinFilter, ChebyshevInterpolation, GPRFilter
from graphs import random_graph

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    return random_graph(12, 20, 3, seed=2)


def adjacency(graph, self_loops=False):
    return NormalisedAdjacency(self_loops)(graph).normalised_adj.double()


def test_gpr_starts_as_personalised_pagerank(graph):
    found = GPRFilter(6, 0.1)(graph.x, adjacency(graph, self_loops=True))
    expected = APPNP(6, 0.1)(graph.x, graph.edge_index)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_gpr_in_the_spectrum(graph):
    layer, a = GPRFilter(4, 0.1), adjacency(graph, self_loops=True)
    torch.nn.init.normal_(layer.gamma)
    values, vectors = torch.linalg.eigh(a.to_dense())
    response = sum(g * values**k for k, g in enumerate(layer.gamma))
    expected = vectors @ (response[:, None] * (vectors.T @ graph.x))
    torch.testing.assert_close(layer(graph.x, a), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", [BernsteinFilter, ChebyshevInterpolation])
def test_ones_are_the_identity(graph, kind):
    torch.testing.assert_close(kind(7)(graph.x, adjacency(graph)), graph.x)


def test_bernstein_polynomials_in_the_spectrum(graph):
    layer, a, order = BernsteinFilter(5), adjacency(graph), 5
    torch.nn.init.normal_(layer.theta)
    values, vectors = torch.linalg.eigh(torch.eye(12) - a.to_dense())
    response = sum(
        theta.relu() * comb(order, k) / 2**order * (2 - values) ** (order - k) * values**k
        for k, theta in enumerate(layer.theta)
    )
    expected = vectors @ (response[:, None] * (vectors.T @ graph.x))
    torch.testing.assert_close(layer(graph.x, a), expected, atol=1e-6, rtol=1e-6)


def test_the_interpolation_takes_its_values_at_its_nodes(graph):
    order = 6
    layer = ChebyshevInterpolation(order)
    torch.nn.init.uniform_(layer.theta, -1, 1)
    nodes = torch.cos((order - torch.arange(order + 1.0) + 0.5) * torch.pi / (order + 1))
    # At eigenvalues `nodes` of -A, a diagonal matrix, the filter is what was learned.
    matrix = torch.diag(-nodes).to_sparse_csr()
    found = layer(torch.ones(order + 1, 1), matrix).squeeze(1)
    torch.testing.assert_close(found, layer.theta.relu())


@pytest.mark.parametrize(
    "kind", [BernsteinFilter, ChebyshevInterpolation, lambda k: GPRFilter(k, 0.1)]
)
def test_gradients(graph, kind):
    layer, a = kind(3), adjacency(graph)
    x = graph.x.clone().requires_grad_()
    weight = next(layer.parameters())
    torch.nn.init.uniform_(weight, 0.2, 1)

    def loss(x, weight):
        return torch.func.functional_call(
            layer, {next(iter(dict(layer.named_parameters()))): weight}, (x, a)
        )

    assert torch.autograd.gradcheck(loss, (x, weight))

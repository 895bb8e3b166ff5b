"""Filters against the spectrum, PyTorch Geometric and their definitions."""

from math import comb

import pytest
import torch
from torch_geometric.nn import APPNP

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.layers.spectral_filters import BernsteinFilter, ChebyshevInterpolation, GPRFilter
from drawn import check_derivatives
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


def by_gpr(layer, values):
    return sum(g * (1 - values) ** k for k, g in enumerate(layer.gamma))


def by_bernstein(layer, values):
    parts = [comb(5, k) / 2**5 * (2 - values) ** (5 - k) * values**k for k in range(6)]
    return sum(theta.relu() * part for theta, part in zip(layer.theta, parts, strict=True))


@pytest.mark.parametrize(
    ("layer", "response"), [(GPRFilter(4, 0.1), by_gpr), (BernsteinFilter(5), by_bernstein)]
)
def test_filters_in_the_spectrum_of_the_laplacian(graph, layer, response):
    layer, a = layer.double(), adjacency(graph, self_loops=response is by_gpr)
    torch.nn.init.normal_(next(layer.parameters()))
    values, vectors = torch.linalg.eigh(torch.eye(12) - a.to_dense())
    expected = vectors @ (response(layer, values)[:, None] * (vectors.T @ graph.x))
    torch.testing.assert_close(layer(graph.x, a), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", [BernsteinFilter, ChebyshevInterpolation])
def test_ones_are_the_identity(graph, kind):
    torch.testing.assert_close(kind(7)(graph.x, adjacency(graph)), graph.x)


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
    torch.nn.init.uniform_(next(layer.parameters()), 0.2, 1)
    check_derivatives(layer, lambda x: (x, a), graph.x)

"""Q-GCN: a plain graph convolution between tangent vectors, with a bias that moves points."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.errors import UsageError
from curvlab.manifolds import PseudoHyperboloid
from curvlab.models.q_gcn import QGCN

NODES, FEATURES, DIM = 7, 5, 6

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    torch.manual_seed(0)
    path = torch.tensor([[0, 1, 2, 3, 4, 2], [1, 2, 3, 4, 5, 5]])  # and 6 by itself
    data = Data(x=0.3 * torch.randn(NODES, FEATURES), edge_index=torch.cat([path, path.flip(0)], 1))
    return SparseAdjacency(self_loops=True)(data)


def network(time_dims, bias=0.3, layers=2, skip_average=False):
    torch.manual_seed(1)
    manifold = partial(PseudoHyperboloid, time_dims=time_dims, kappa=-0.8)
    made = QGCN(FEATURES, manifold, DIM, layers=layers, activation="elu", skip_average=skip_average)
    for linear in made.linears:
        torch.nn.init.normal_(linear.bias, std=bias)
    return made


def flat(model, graph):
    """The same weights as a graph convolution of means, up to the last exponential."""
    dense = graph.adj_t.to_dense().to(graph.x.dtype)
    v = graph.x
    for linear in model.linears:
        v = F.elu(dense @ F.linear(v, linear.weight, linear.bias) / dense.sum(1, keepdim=True))
    return model.space.expmap0(v)


def test_with_one_axis_of_time_it_is_a_graph_convolution(graph):
    """There is no sphere then, and the other factor is flat."""
    model = network(time_dims=1)
    torch.testing.assert_close(model(graph), flat(model, graph))


@pytest.mark.parametrize("time_dims", [1, 3, DIM])
def test_without_a_bias_it_is_a_graph_convolution(graph, time_dims):
    model = network(time_dims, bias=0.0)
    torch.testing.assert_close(model(graph), flat(model, graph))


def test_a_bias_moves_points_along_the_sphere(graph):
    model = network(time_dims=3)
    assert not torch.allclose(model(graph), flat(model, graph), atol=1e-3)


def test_embeddings_lie_in_the_space_and_every_parameter_has_a_gradient(graph):
    model = network(time_dims=3)
    x = model(graph)
    assert x.shape == (NODES, model.dim_out)
    times, rest = x.square().split([3, DIM - 3], 1)
    norms = rest.sum(1) - times.sum(1)
    torch.testing.assert_close(norms, (1 / model.space.kappa).expand(NODES))
    model.space.sqdist(x[:-1], x[1:]).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.any() for p in model.parameters())


def test_more_axes_than_coordinates_are_refused():
    with pytest.raises(UsageError, match="time_dims=7 are more axes than the coordinates"):
        network(time_dims=7)


def test_it_starts_with_the_gain_of_its_code():
    torch.manual_seed(0)
    manifold = partial(PseudoHyperboloid, time_dims=8, kappa=-1.0)
    (linear,) = QGCN(300, manifold, 101).linears
    assert linear.weight.var().item() == pytest.approx(4 / (300 + 100), rel=0.05)


def test_for_reconstruction_the_last_logarithm_is_a_mean_with_the_nodes_own(graph):
    model, plain = (network(3, layers=1, skip_average=skip) for skip in (True, False))
    (linear,), space = model.linears, model.space
    expected = (linear(graph.x) + space.logmap0(plain(graph))) / 2
    torch.testing.assert_close(space.logmap0(model(graph)), expected)

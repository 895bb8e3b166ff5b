"""Graph convolutions in curved spaces: their layers as written, and their flat limits."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from curvlab.data.transforms.graph import SparseAdjacency
from curvlab.errors import UsageError
from curvlab.manifolds import PseudoHyperboloid, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds._geoopt import geoopt
from curvlab.models import HAT, HGAT, HGCN, HGNN, QGCN, KappaGCN

NODES, FEATURES, DIM = 7, 5, 4

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    path = torch.tensor([[0, 1, 2, 3, 4, 2], [1, 2, 3, 4, 5, 5]])  # and 6 by itself
    data = Data(x=0.5 * torch.randn(NODES, FEATURES), edge_index=torch.cat([path, path.flip(0)], 1))
    return SparseAdjacency(self_loops=True)(data)


def untrained(kind, kappa=-1.0, **options):
    torch.manual_seed(1)
    if kind is QGCN:
        options = {"manifold": partial(PseudoHyperboloid, time_dims=3, kappa=-0.8), **options}
    defaults = {"dim": DIM, "layers": 2, "activation": "elu", "skip_average": False}
    manifold = partial(Stereographic, kappa=kappa)
    return kind(FEATURES, **{"manifold": manifold, **defaults, **options})


def network(kind, **options):
    made = untrained(kind, **options)
    for name, parameter in made.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return made


def mean(graph, x):
    dense = graph.adj_t.to_dense().to(x.dtype)
    return dense @ x / dense.sum(1, keepdim=True)


def test_hgcn_is_the_papers_composition_on_balls_of_several_curvatures(graph):
    model = network(HGCN)
    spaces = [*(linear.space for linear in model.linears), model.space]
    for space, kappa in zip(spaces, (-0.7, -1.6, -1.1), strict=True):
        space.load_state_dict(Stereographic(kappa=kappa).state_dict())
    balls = [geoopt.PoincareBall(c=-space.kappa.detach()) for space in spaces]
    x = balls[0].expmap0(graph.x)
    for linear, ball, after in zip(model.linears, balls[:-1], balls[1:], strict=True):
        h = ball.mobius_matvec(linear.weight, x)
        h = ball.mobius_add(h, ball.expmap0(linear.bias))
        h = ball.expmap0(mean(graph, ball.logmap0(h)))
        x = after.expmap0(F.elu(ball.logmap0(h)))
    torch.testing.assert_close(model(graph), x)


def test_hgat_weighs_each_neighbour_by_a_score_of_the_pair(graph):
    model = network(HGAT, layers=1)
    (linear,) = model.linears
    ball, dense = geoopt.PoincareBall(c=1.0), graph.adj_t.to_dense()
    h = ball.mobius_matvec(linear.weight, ball.expmap0(graph.x))
    u = ball.logmap0(ball.mobius_add(h, ball.expmap0(linear.bias)))
    for node in range(NODES):
        near = u[dense[node] > 0]
        scores = linear.attention(torch.cat([u[node].expand_as(near), near], 1)).sigmoid()
        expected = ball.expmap0(F.elu((scores * near).mean(0)))
        torch.testing.assert_close(model(graph)[node], expected)


def test_hgnn_is_its_composition(graph):
    model = network(HGNN)
    ball = geoopt.PoincareBall(c=1.0)
    h = ball.expmap0(F.elu(model.features(graph.x)))
    for linear in model.linears:
        h = F.elu(ball.expmap0(mean(graph, ball.logmap0(h) @ linear.weight.T)))
    torch.testing.assert_close(model(graph), h)


def test_hat_attends_to_what_is_near(graph):
    model = network(HAT, heads=2, layers=1)
    (linear,) = model.linears
    ball = geoopt.PoincareBall(c=1.0)
    heads = ball.expmap0((graph.x @ linear.weight.T).view(NODES, 2, DIM // 2))
    dense = graph.adj_t.to_dense()
    for node in range(NODES):
        near = heads[dense[node] > 0]
        weights = (-ball.dist(heads[node], near)).softmax(0)
        v = (weights.unsqueeze(-1) * ball.logmap0(near)).sum(0)
        torch.testing.assert_close(model(graph)[node], ball.expmap0(F.elu(v)).flatten())


@pytest.mark.parametrize("kappa", [[-1.0, -0.5], [0.8, -1.0], [0.0, 0.0]])
def test_kappa_gcn_averages_by_the_midpoint_of_each_component(graph, kappa):
    model = network(KappaGCN, kappa=kappa, components=2, layers=1)
    (linear,) = model.linears
    kappa = torch.tensor(kappa)
    blocks = (graph.x @ linear.weight.T).view(NODES, 2, DIM // 2)
    points = k_space.expmap0(blocks, kappa)
    dense = graph.adj_t.to_dense()
    for node in range(NODES):
        near = points[dense[node] > 0].transpose(0, 1)
        middle = k_space.midpoint(near, torch.ones(2, near.shape[1]), kappa)
        expected = k_space.expmap0(F.elu(k_space.logmap0(middle, kappa)), kappa)
        torch.testing.assert_close(model(graph)[node], expected.flatten())


def test_without_curvature_they_are_graph_networks_of_means(graph):
    hgcn, kappa_gcn = network(HGCN, kappa=0.0), network(KappaGCN, kappa=0.0, components=2)
    v = u = graph.x
    for of_hgcn, of_kappa in zip(hgcn.linears, kappa_gcn.linears, strict=True):
        v = F.elu(mean(graph, F.linear(v, of_hgcn.weight, of_hgcn.bias)))
        u = F.elu(mean(graph, F.linear(u, of_kappa.weight)))
    torch.testing.assert_close(hgcn(graph), v)
    torch.testing.assert_close(kappa_gcn(graph), u)


def q_gcn(time_dims, bias=0.3):
    made = untrained(QGCN, manifold=partial(PseudoHyperboloid, time_dims=time_dims, kappa=-0.8))
    for linear in made.linears:
        torch.nn.init.normal_(linear.bias, std=bias)
    return made


@pytest.mark.parametrize(("time_dims", "bias"), [(1, 0), (3, 0), (DIM, 0), (1, 0.3), (3, 0.3)])
def test_without_a_bias_or_a_sphere_q_gcn_is_a_graph_convolution(graph, time_dims, bias):
    """Up to the last exponential; a bias moves points along the sphere, if there is one."""
    model, v = q_gcn(time_dims, bias), graph.x
    for linear in model.linears:
        v = F.elu(mean(graph, F.linear(v, linear.weight, linear.bias)))
    same = torch.isclose(model(graph), model.space.expmap0(v), atol=1e-8).all()
    assert bool(same) == (bias == 0 or time_dims == 1)


def test_more_axes_than_coordinates_are_refused():
    with pytest.raises(UsageError, match="time_dims=7 are more axes than the coordinates"):
        q_gcn(time_dims=7)


def test_equal_neighbours_of_kappa_gcn_are_their_midpoint_on_both_halves_of_a_sphere(graph):
    """The printed quotient sends those beyond the equator to the antipode."""
    graph.x = graph.x[:1].expand(NODES, -1)
    for size, inside in ((0.5, True), (2.5, False)):
        for midpoint in (None, "paper"):
            model = network(KappaGCN, kappa=1.0, components=2, layers=1, midpoint=midpoint)
            (linear,) = model.linears
            v = F.linear(graph.x, linear.weight).view(NODES, 2, DIM // 2)
            linear.weight.data *= size / v.norm(dim=-1).amax()
            v = F.linear(graph.x, linear.weight).view(NODES, 2, DIM // 2)
            points = k_space.expmap0(v, 1.0)
            beyond = points.square().sum(-1, keepdim=True) > 1
            assert beyond.any() != inside
            opposite = -points / points.square().sum(-1, keepdim=True)
            expected = torch.where(beyond, opposite, points) if midpoint else points
            found = model.midpoints(graph.adj_t, points.flatten(1))
            torch.testing.assert_close(found, expected.flatten(1))

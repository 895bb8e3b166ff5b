"""Attention by distance: HNN++'s layer, midpoints of the ball and of the Klein model, blocks."""

import geoopt
import pytest
import torch

from curvlab.layers import (
    PoincareDistanceAttention,
    PoincareLinear,
    TangentDistanceAttention,
    row_blocks,
)
from curvlab.manifolds import Lorentz, lorentz

ATTENTIONS = [TangentDistanceAttention, PoincareDistanceAttention]

pytestmark = pytest.mark.usefixtures("float64")


def points(space, nodes, dim, seed=0):
    drawn = torch.randn(nodes, dim, generator=torch.Generator().manual_seed(seed))
    return space.from_space(drawn).detach()


def fully_connected(space, weight, offset):
    layer = PoincareLinear(len(weight[0]), len(weight), space)
    layer.weight.data = torch.tensor(weight)
    layer.offset.data = torch.tensor(offset)
    return layer


def test_coordinates_of_the_layer_are_distances_to_hyperplanes():
    """v_k = 2 |z_k| d(x, H_k), H_k through exp_0(r_k z_k / |z_k|) across z_k, as geoopt has it."""
    c, r = 0.7, 0.4
    space = Lorentz(-c)
    z = torch.tensor([0.3, -0.5, 0.2])
    x = points(space, 9, 3)
    root = c**0.5
    v = (root * fully_connected(space, [z.tolist()], [r]).space_part(x)).asinh()[:, 0] / root
    ball = geoopt.PoincareBall(c)
    on_plane = ball.expmap0(r * z / z.norm())
    distance = ball.dist2plane(lorentz.to_stereographic(x, -c), on_plane, z, signed=True)
    torch.testing.assert_close(v, 2 * z.norm() * distance)


def test_the_layer_is_linear_in_flat_space_and_at_length_one_half():
    weight, offset = [[0.3, -0.5], [1.0, 0.2]], [0.2, -0.1]
    flat = torch.tensor([[0.4, 1.3], [-2.0, 0.1]])
    z, r = torch.tensor(weight), torch.tensor(offset)
    space = Lorentz(-1e-10)
    layer = fully_connected(space, weight, offset)
    expected = 2 * flat @ z.T - 4 * r * z.norm(dim=1)
    torch.testing.assert_close(layer.space_part(space.from_space(flat)), expected)
    half = (z / (2 * z.norm(dim=1, keepdim=True))).tolist()
    space = Lorentz(-2.0)
    layer = fully_connected(space, half, [0.0, 0.0])
    expected = flat @ (z / z.norm(dim=1, keepdim=True)).T
    torch.testing.assert_close(layer.space_part(space.from_space(flat)), expected)


def test_attention_of_hyperbolic_networks_in_the_ball():
    """Distances and gyromidpoints of geoopt's ball, with the weights of a softmax."""
    c, dim = 0.8, 3
    space = Lorentz(-c)
    layer, x = PoincareDistanceAttention(dim, 1, dim, space), points(space, 7, dim)
    layer.raw_beta.data.fill_(0.3)
    q, k, v = (
        lorentz.to_stereographic(space.from_space(part[:, 0]), -c) for part in layer.split(x)
    )
    ball = geoopt.PoincareBall(c)
    weights = (-layer.beta * ball.dist(q[:, None], k[None])).softmax(-1)
    expected = ball.weighted_midpoint(
        v.expand(7, 7, dim), weights, reducedim=[1], dim=-1, lincomb=False
    )
    torch.testing.assert_close(lorentz.to_stereographic(layer(x), -c), expected)


def test_attention_of_hyperbolic_attention_networks_in_the_klein_model():
    """exp_0(W log_0 x), and sums with Lorentz factors of points of the Klein model."""
    dim = 3
    space = Lorentz(-1.0)
    layer, x = TangentDistanceAttention(dim, 1, dim, space), points(space, 7, dim)
    tangents = space.logmap0(x) @ layer.projection.weight.T
    q, k, v = (space.expmap0(part) for part in tangents.split(dim, dim=1))
    weights = (-layer.beta * space.dist(q[:, None], k[None])).softmax(-1)
    klein = lorentz.space(v) / v[:, :1]
    gamma = (1 - klein.square().sum(-1)).rsqrt()
    middle = (weights * gamma) @ klein / (weights * gamma).sum(-1, keepdim=True)
    out = layer(x)
    torch.testing.assert_close(lorentz.space(out) / out[:, :1], middle)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_blocks_of_queries_change_nothing(attention, monkeypatch):
    space = Lorentz(-0.6)
    layer, x = attention(4, 2, 4, space), points(space, 13, 4)

    def found():
        out = layer(x)
        return out, torch.autograd.grad(out.square().sum(), list(layer.parameters()))

    whole = found()
    monkeypatch.setattr(row_blocks, "BLOCK_ENTRIES", 3 * 2 * 13)
    torch.testing.assert_close(found(), whole)

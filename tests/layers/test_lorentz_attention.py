"""Attention on the hyperboloid: Hypformer's and by distance; definitions, extremes, memory."""

import geoopt
import pytest
import torch
import torch.nn.functional as F

from curvlab.layers import (
    LorentzLinearAttention,
    LorentzSoftmaxAttention,
    PoincareDistanceAttention,
    PoincareLinear,
    TangentDistanceAttention,
    focused_attention,
    focused_features,
    row_blocks,
)
from curvlab.manifolds import Lorentz, lorentz
from drawn import assert_finite, draw
from modes import LargestTensor

pytestmark = pytest.mark.usefixtures("float64")

POWERS = [1.0, 1.5, 2.0, 3.0, 4.0, 10.0]


ATTENTIONS = [
    LorentzLinearAttention,
    LorentzSoftmaxAttention,
    TangentDistanceAttention,
    PoincareDistanceAttention,
]


@pytest.mark.parametrize("power", POWERS)
def test_features_keep_the_norm_and_are_homogeneous(power):
    e = draw(7, 2, 5)
    features = focused_features(e, power, 0.0)
    definition = e.relu().pow(power)
    definition *= e.relu().norm(dim=-1, keepdim=True) / definition.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(features, definition)
    torch.testing.assert_close(focused_features(3.7 * e, power, 0.0), 3.7 * features)


@pytest.mark.parametrize("power", POWERS)
def test_derivatives_of_the_features(power):
    e = draw(4, 2, 3).requires_grad_()

    def features(e):
        return focused_features(e, power, 1e-2)

    assert torch.autograd.gradcheck(features, e)
    assert torch.autograd.gradgradcheck(features, e)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("power", POWERS)
def test_features_of_extreme_rows_in_float32(power):
    e = torch.stack([draw(8, size=size) for size in (0.0, 1e-8, 1.0, 1e4, 1e12)])
    e = torch.cat([e, -e]).requires_grad_()
    features = focused_features(e, power)
    assert_finite(features, [e])
    rectified = e.detach().relu() + 1e-6
    torch.testing.assert_close(features.norm(dim=-1), rectified.norm(dim=-1))


def quadratic(query, key, value, power, smallest):
    """Attention by all pairs of nodes, without `smallest` in the denominator."""
    phi_q, phi_k = (focused_features(x, power, smallest).movedim(1, 0) for x in (query, key))
    weights = phi_q @ phi_k.mT
    return (weights / weights.sum(-1, keepdim=True) @ value.movedim(1, 0)).movedim(0, 1)


@pytest.mark.parametrize("power", POWERS)
def test_equals_the_quadratic_form(power):
    """Weights `phi(q_i) . phi(k_j)` that add up to 1 in each row; a factor t cancels."""
    query, key, value = (draw(9, 2, 4, seed=i) for i in range(3))
    query[..., 0] = key[..., 0] = 1.0  # without `smallest` no row may be all negative
    exact = focused_attention(query, key, value, power, 0.0)
    torch.testing.assert_close(exact, quadratic(query, key, value, power, 0.0))
    torch.testing.assert_close(focused_attention(query / 3, key / 3, value, power, 0.0), exact)
    ones = focused_attention(query, key, torch.ones_like(value), power, 0.0)
    torch.testing.assert_close(ones, torch.ones_like(value))


def test_layer_is_its_definition():
    """Head after head, without the shortcut that psi of the mean is."""
    space = Lorentz(-0.6, learnable=True)
    layer = LorentzLinearAttention(6, 3, space)
    with torch.no_grad():
        layer.projection.bias.copy_(draw(54))
    x = space.from_space(draw(8, 6))
    blocks = layer.projection.weight.reshape(3, 3, 6, 7)
    biases = layer.projection.bias.reshape(3, 3, 6)
    outputs = []
    for head in range(3):
        query, key, value = (x @ blocks[i, head].T + biases[i, head] for i in range(3))
        attended = focused_attention(query[:, None], key[:, None], value[:, None], 2.0)[:, 0]
        outputs.append(attended + layer.psi(value))
    torch.testing.assert_close(layer(x), space.from_space(sum(outputs) / 3))


@pytest.mark.parametrize("inner", [None, "as_released"])
def test_scores_of_softmax_attention(inner):
    """`2 <q, k> / s` for k = 2, as released half of it; constants cancel, this factor does not."""
    k = 2.0
    space = Lorentz(-1 / k, learnable=False)
    layer = LorentzSoftmaxAttention(3, 2, space, inner)
    x = space.from_space(draw(5, 3))
    metric = torch.diag(torch.tensor([-1.0, 1, 1, 1]))
    heads = []
    for query, key, value in zip(*(p.unbind(1) for p in layer.split(x)), strict=True):
        q, key, value = (
            torch.cat([(k + s.square().sum(1, keepdim=True)).sqrt(), s], 1)
            for s in (query, key, value)
        )
        score = 2 + 2 * (q @ metric @ key.T) / (k if inner else 1)
        total = (score / 3**0.5 + 0.3).softmax(-1) @ value
        square = (total @ metric * total).sum(1, keepdim=True)
        heads.append(total * (k / -square).sqrt())
    total = heads[0] + heads[1]
    square = (total @ metric * total).sum(1, keepdim=True)
    torch.testing.assert_close(layer(x), total * (k / -square).sqrt())


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("make", ATTENTIONS)
def test_extreme_rows_in_float32(make):
    """Rows of zeros, queries and keys that are all negative, points far out."""
    space = Lorentz(-0.6, learnable=True)
    layer = make(6, 2, space)
    s = torch.cat([draw(2, 6, size=size) for size in (0.0, 1.0, 100.0)]).requires_grad_()
    for bias in (0.0, -1e3):
        for name, parameter in layer.projection.named_parameters():
            if name in ("bias", "offset"):
                torch.nn.init.constant_(parameter, bias)
        points = layer(space.from_space(s))
        error = (lorentz.inner(points.double(), points.double()) - 1 / space.kappa).abs()
        assert (error <= 1e-4 * points[:, 0].double().square().clamp(min=1)).all()
        assert_finite(points, [s, *layer.parameters()])


@pytest.mark.parametrize("heads", [1, 2])
def test_memory_by_the_number_of_nodes(heads):
    """No array beyond the scores in softmax attention, none quadratic in linear attention."""
    space, nodes, dim = Lorentz(-0.6, learnable=True), 4_000 // heads, 16
    x = space.from_space(draw(nodes, dim)).detach().requires_grad_()
    bounds = [
        (LorentzLinearAttention(dim, heads, space), 3 * dim * nodes),
        (LorentzSoftmaxAttention(dim, heads, space), nodes**2),
    ]
    for layer, bound in bounds:
        with LargestTensor() as largest:
            torch.autograd.grad(layer(x).sum(), [x, *layer.parameters()])
        assert nodes * dim < largest.elements <= heads * bound


def test_coordinates_of_the_layer_are_distances_to_hyperplanes():
    """v_k = 2 |z_k| d(x, H_k), H_k through exp_0(r_k z_k / |z_k|) across z_k, as geoopt has it."""
    c, r = 0.7, 0.4
    space = Lorentz(-c, learnable=True)
    z = torch.tensor([0.3, -0.5, 0.2])
    x = space.from_space(draw(9, 3))
    root, layer = c**0.5, PoincareLinear(3, 1, space)
    layer.weight.data, layer.offset.data = z[None], torch.tensor([r])
    v = (root * layer.space_part(x)).asinh()[:, 0] / root
    ball = geoopt.PoincareBall(c)
    on_plane = ball.expmap0(r * z / z.norm())
    distance = ball.dist2plane(lorentz.to_stereographic(x, -c), on_plane, z, signed=True)
    torch.testing.assert_close(v, 2 * z.norm() * distance)


def test_attention_of_hyperbolic_networks_in_the_ball():
    """Distances and gyromidpoints of geoopt's ball, with the weights of a softmax."""
    c, dim = 0.8, 3
    space = Lorentz(-c, learnable=True)
    layer, x = PoincareDistanceAttention(dim, 1, space), space.from_space(draw(7, dim))
    layer.raw_beta.data.fill_(0.3)
    q, k, v = (
        lorentz.to_stereographic(space.from_space(part[:, 0]), -c) for part in layer.split(x)
    )
    ball = geoopt.PoincareBall(c)
    weights = (-F.softplus(layer.raw_beta) * ball.dist(q[:, None], k[None])).softmax(-1)
    expected = ball.weighted_midpoint(
        v.expand(7, 7, dim), weights, reducedim=[1], dim=-1, lincomb=False
    )
    torch.testing.assert_close(lorentz.to_stereographic(layer(x), -c), expected)


def test_attention_of_hyperbolic_attention_networks_in_the_klein_model():
    """exp_0(W log_0 x), and sums with Lorentz factors of points of the Klein model."""
    dim = 3
    space = Lorentz(-1.0, learnable=True)
    layer, x = TangentDistanceAttention(dim, 1, space), space.from_space(draw(7, dim))
    tangents = space.logmap0(x) @ layer.projection.weight.T
    q, k, v = (space.expmap0(part) for part in tangents.split(dim, dim=1))
    weights = (-F.softplus(layer.raw_beta) * space.dist(q[:, None], k[None])).softmax(-1)
    klein = lorentz.space(v) / v[:, :1]
    gamma = (1 - klein.square().sum(-1)).rsqrt()
    middle = (weights * gamma) @ klein / (weights * gamma).sum(-1, keepdim=True)
    out = layer(x)
    torch.testing.assert_close(lorentz.space(out) / out[:, :1], middle)


@pytest.mark.parametrize("attention", [TangentDistanceAttention, PoincareDistanceAttention])
def test_blocks_of_queries_change_nothing(attention, monkeypatch):
    space = Lorentz(-0.6, learnable=True)
    layer, x = attention(4, 2, space), space.from_space(draw(13, 4)).detach()

    def found():
        out = layer(x)
        return out, torch.autograd.grad(out.square().sum(), list(layer.parameters()))

    whole = found()
    monkeypatch.setattr(row_blocks, "BLOCK_ENTRIES", 3 * 2 * 13)
    torch.testing.assert_close(found(), whole)

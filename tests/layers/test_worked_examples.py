"""The specifications' worked examples of attention and logits: numbers from outside of the code."""

import pytest
import torch

from curvlab.layers import (
    LorentzPrototypes,
    LorentzSoftmaxAttention,
    PoincareLinear,
    focused_attention,
    focused_features,
)
from curvlab.manifolds import Lorentz, lorentz, stereographic
from curvlab.models.sgformer import simple_attention

pytestmark = pytest.mark.usefixtures("float64")

QUERY = [[1.0, 2], [3, -1], [0.5, 0.5]]
KEY = [[2.0, 0], [1, 1], [-1, 3]]
VALUE = [[1.0, 0], [0, 1], [2, -1]]


def heads_of(*rows):
    """`[nodes, 1, dim]` each."""
    return [torch.tensor(r).unsqueeze(1) for r in rows]


@pytest.mark.parametrize(
    ("power", "features", "output"),
    [
        (1, (3, 0, 4), (14 / 11, -3 / 11)),
        (2, (2.451306, 0, 4.357878), (1.368421, -0.368421)),
        (3, (1.943503, 0, 4.606821), (1.428571, -0.428571)),
    ],
)
def test_hypformers_linear_attention(power, features, output):
    found = focused_features(torch.tensor([3.0, -1.0, 4.0]), power, 0.0)
    assert found.tolist() == pytest.approx(features, abs=1e-6)
    found = focused_attention(*heads_of(QUERY, KEY, VALUE), power, 0.0)[:, 0]
    expected = [output, (2 / 3, 1 / 3), (8 / 7, -1 / 7)]
    assert found.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_hypformers_softmax_attention():
    """Weights and centroid, from queries, keys and values set by hand."""
    space = Lorentz(-1.0, learnable=False)
    layer = LorentzSoftmaxAttention(2, 1, space)
    parts = heads_of(QUERY, KEY, VALUE)
    layer.split = lambda x: parts
    points = layer(torch.zeros(3, 3))
    assert points[0].tolist() == pytest.approx((1.223330, 0.135474, 0.691507), abs=1e-6)
    query, key, value = (space.from_space(p[:, 0]) for p in parts)
    weights = (2 * (2 + 2 * lorentz.inner(query[:, None], key)) / 8**0.5).softmax(-1)
    assert weights[0].tolist() == pytest.approx((0.038135, 0.899024, 0.062841), abs=1e-6)
    torch.testing.assert_close(points, lorentz.centroid(value.expand(3, 3, 3), weights, -1.0))


@pytest.mark.parametrize(
    ("q", "k", "expected"),
    [
        (QUERY, KEY, [[1.034938, -0.034938], [-0.121842, 1.121842], [1.940291, -0.940291]]),
        ([[1.0, 0], [0, 1], [1, 1]], [[1.0, 2], [0, 1], [-1, 0]],
         [[0.937006, 0.062994], [0.105963, 0.894037], [1.735092, -0.735092]]),
    ],
)  # fmt: skip
def test_sgformers_attention(q, k, expected):
    """Of SGFormer's specification and of LRN's."""
    found = simple_attention(*heads_of(q, k, VALUE)).squeeze(1)
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-6, rtol=0)


def test_cats_hyperbolic_attention():
    v = torch.tensor([[0.3, -0.4], [-0.2, 0.5], [0.6, 0.1]])
    distances = stereographic.pairwise_dist(v, v, -1.0)
    expected = torch.tensor([2.28859083, 1.53985067, 2.20204164])
    torch.testing.assert_close(distances[[0, 0, 1], [1, 2, 2]], expected, atol=1e-7, rtol=0)
    weights = (-distances).softmax(-1)[0].tolist()
    assert weights == pytest.approx((0.7599810, 0.0770691, 0.1629499), abs=1e-6)


def test_the_fully_connected_layer_of_the_ball():
    """HNN++'s: a point of the ball of curvature -1, columns (1, 0) and (0.5, -1)."""
    space = Lorentz(-1.0)
    layer = PoincareLinear(2, 2, space)
    layer.weight.data = torch.tensor([[1.0, 0.0], [0.5, -1.0]])
    layer.offset.data = torch.tensor([0.1, -0.2])
    w = layer.space_part(lorentz.from_stereographic(torch.tensor([0.3, -0.2]), -1.0))
    assert w.asinh().tolist() == pytest.approx((0.857467, 2.427130), abs=1e-6)
    ball = lorentz.to_stereographic(space.from_space(w), -1.0)
    assert ball.tolist() == pytest.approx((0.142368, 0.827719), abs=1e-6)


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [(-1.0, (-0.449490, -2.242641)), (-0.5, (-0.472136, -2.324555))],
)
def test_hypformers_prototypes(kappa, expected):
    layer = LorentzPrototypes(2, 2, Lorentz(kappa))
    with torch.no_grad():
        layer.prototypes.copy_(lorentz.from_space(torch.tensor([[0.0, 0], [1, 1]]), kappa))
    logits = layer(lorentz.from_space(torch.tensor([0.5, -0.5]), kappa))
    assert logits.tolist() == pytest.approx(expected, abs=1e-6)

"""Linear map, layer norm, activation and feed-forward layer against their definitions."""

import math

import pytest
import torch
from torch.nn import functional

from curvlab.layers import (
    StereographicFeedForward,
    StereographicLayerNorm,
    StereographicLinear,
)
from curvlab.manifolds import Euclidean, Stereographic, stereographic
from drawn import draw, filled

pytestmark = pytest.mark.usefixtures("float64")

CURVATURES = [(0.0, 0.0), (-1.0, 0.5), (-0.5, -3.9), (1e-9, -1e-9)]


def by_blocks(operation, kappas, *arguments):
    """Apply an operation of one space to each block of coordinates, and join the results."""
    parts = zip(*(a.chunk(len(kappas), dim=-1) for a in arguments), kappas, strict=True)
    return torch.cat([operation(*part) for part in parts], dim=-1)


@pytest.mark.parametrize("kappas", CURVATURES)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_exp_of_matrix_times_log_plus_bias(kappas, bias):
    layer = filled(StereographicLinear(4, 6, Stereographic(2, kappas, learnable=True), bias))
    x = by_blocks(stereographic.expmap0, kappas, draw(5, 4, size=0.5))
    moved = by_blocks(stereographic.logmap0, kappas, x) @ layer.weight.T
    expected = by_blocks(stereographic.expmap0, kappas, moved)
    if bias:
        shift = by_blocks(stereographic.expmap0, kappas, layer.bias).expand_as(expected)
        expected = by_blocks(stereographic.mobius_add, kappas, expected, shift)
    torch.testing.assert_close(layer(x), expected, atol=1e-12, rtol=0)


def test_linear_starts_with_small_uniform_weights_and_no_bias():
    layer = StereographicLinear(200, 100, Euclidean())
    bound = math.sqrt(0.5) * math.sqrt(6 / 300)
    assert layer.weight.abs().max() <= bound
    assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not layer.bias.any()


def test_dropout_of_a_linear_layer_is_of_its_weights():
    """One mask of weights for all points, the kept ones scaled; none outside training."""
    layer = StereographicLinear(50, 40, Euclidean(), bias=False, weight_dropout=0.25)
    used = layer(torch.eye(50)).T
    dropped = used == 0
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.05)
    torch.testing.assert_close(used[~dropped], layer.weight[~dropped] / 0.75)
    torch.testing.assert_close(layer.eval()(torch.eye(50)).T, layer.weight)


@pytest.mark.parametrize("kappas", [(0.0, 0.0), (-1.0, 0.05), (-0.5, -3.9)])
def test_layer_norm_normalises_the_logarithm_over_the_full_width(kappas):
    layer = filled(StereographicLayerNorm(6, Stereographic(2, kappas, learnable=True)))
    v = draw(5, 6, size=0.5)
    x = by_blocks(stereographic.expmap0, kappas, v)
    expected = functional.layer_norm(v, (6,), layer.weight, layer.bias, 1e-5)
    result = by_blocks(stereographic.logmap0, kappas, layer(x))
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kappas", CURVATURES)
def test_feed_forward_is_linear_activation_linear(kappas):
    space = Stereographic(2, kappas, learnable=True)
    layer = filled(StereographicFeedForward(4, 8, torch.tanh, space))
    x = by_blocks(stereographic.expmap0, kappas, draw(5, 4, size=0.5))
    activated = space.expmap0(torch.tanh(space.logmap0(layer.inner(x))))
    expected = layer.outer(activated)
    torch.testing.assert_close(layer(x), expected, atol=1e-9, rtol=0)

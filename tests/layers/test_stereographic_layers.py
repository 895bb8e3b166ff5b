"""Linear map, layer norm and logits against their definitions, and the specification's numbers."""

import math

import pytest
import torch
from torch.nn import functional

from curvlab.layers import StereographicLayerNorm, StereographicLinear, StereographicLogits
from curvlab.manifolds import Euclidean, Stereographic, stereographic
from drawn import assert_finite, draw, filled

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


POINTS = torch.tensor([[0.1, 0.2, -0.3, 0.4], [0.5, -0.1, 0.2, 0.2]], dtype=torch.float64)
NORMALS = torch.tensor([[1, 0, 0, 1], [-1, 2, 0.5, 0.5]], dtype=torch.float64)
OFFSETS = torch.tensor([[0, 0, 0, 0], [0.1, -0.1, 0.2, 0.05]], dtype=torch.float64)

PAPER = {
    (-1, 1): [[2.051359, 2.643320], [3.316223, -2.160524]],
    (-0.25, 0.5): [[2.134549, 2.642314], [3.184204, -1.989874]],
    # The first entry depends on how an arcsine beyond 1 is clamped, and is left out.
    (-2, 2): [[float("nan"), 2.522287], [3.204572, -2.454266]],
}


def logits(space, curvature="geometric", normals=NORMALS, offsets=OFFSETS):
    layer = StereographicLogits(normals.shape[1], len(normals), space, curvature).double()
    with torch.no_grad():
        layer.normal.copy_(normals)
        layer.offset.copy_(offsets)
    return layer


@pytest.mark.parametrize(("kappa", "expected"), PAPER.items())
def test_worked_example_with_the_curvature_of_the_paper(kappa, expected):
    values, expected = (
        logits(Stereographic(2, kappa, learnable=True), "paper")(POINTS),
        torch.tensor(expected),
    )
    defined = ~expected.isnan()
    assert torch.allclose(values[defined], expected.double()[defined], atol=1e-6)
    assert torch.isfinite(values).all()


def test_flat_component_is_linear():
    layer = logits(Euclidean(1))
    expected = 4 * torch.stack(
        [((POINTS - p) * a).sum(-1) for p, a in zip(OFFSETS, NORMALS, strict=True)], 1
    )
    assert torch.allclose(layer(POINTS), expected, atol=1e-12)


@pytest.mark.parametrize("kappa", [-2.0, -0.3, 0.4, 1.5])
def test_is_the_distance_to_the_hyperplane_by_definition(kappa):
    """|logit| = 2 |a| arsin_k(u) from z = (-P) (+) x itself, with P and A built one by one."""
    x, a, p = (0.3 * torch.randn(5, 3, dtype=torch.float64) for _ in range(3))
    x = stereographic.expmap0(x, kappa)
    values = logits(Stereographic(1, kappa, learnable=True), normals=a, offsets=p)(x)
    for c in range(5):
        offset = stereographic.expmap0(p[c], kappa)
        normal = stereographic.transport0(offset, a[c], kappa)
        z = stereographic.mobius_add(-offset.expand_as(x), x, kappa)
        u = 2 * (z @ normal) / ((1 + kappa * z.square().sum(-1)) * normal.norm())
        expected = 2 * a[c].norm() * stereographic.arsin_k(u, kappa)
        assert torch.allclose(values[:, c], expected, atol=1e-10)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [(-3.0, 2.0), (0.0, 0.0), (1e-8, -1e-8)])
def test_gradients_are_finite_at_initialisation_and_on_the_hyperplane(kappa):
    space = Stereographic(2, kappa, learnable=True)
    layer = StereographicLogits(4, 3, space)
    x = torch.cat([torch.zeros(1, 4), 0.2 * torch.randn(6, 4)]).requires_grad_()
    assert_finite(layer(x).square(), [x, *layer.parameters()])

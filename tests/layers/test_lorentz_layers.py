"""HTC, HRC and the residual: the specification's numbers, similarities, derivatives, extremes."""

from typing import get_args

import pytest
import torch
from torch import nn

from curvlab.layers import LorentzFeatureLinear, LorentzLinear, LorentzMap
from curvlab.layers.lorentz import CurvatureMode, InputLift, midpoint, vectors_to_points
from curvlab.manifolds import Lorentz, lorentz
from drawn import draw

pytestmark = pytest.mark.usefixtures("float64")


def with_weights(layer, weight, bias):
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def square(x):
    return lorentz.inner(x, x)


@pytest.mark.parametrize(
    ("kappa", "expected"), [(-0.5, (3.0053, 2.5711, 0.6491)), (-4.0, (1.0625, 0.9090, 0.2295))]
)
def test_worked_example(kappa, expected):
    layer = LorentzLinear(2, 2, Lorentz(-1.0), Lorentz(kappa), "rescale")
    weight = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0]])
    with_weights(layer, weight, torch.tensor([0.1, -0.2]))
    point = layer(torch.tensor([1.25**0.5, 0.3, 0.4]))
    assert point.tolist() == pytest.approx(expected, abs=1e-4)
    assert square(point).item() == pytest.approx(1 / kappa)
    assert (layer.space_part(torch.tensor([1.25**0.5, 0.3, 0.4])) == point[1:]).all()
    layer.space_out = layer.space_in
    torch.testing.assert_close(
        point, (-1 / kappa) ** 0.5 * layer(torch.tensor([1.25**0.5, 0.3, 0.4]))
    )


@pytest.mark.parametrize("kappa", [-0.25, -0.5, -2.0, -4.0])
def test_rescaling_multiplies_all_distances_by_one_factor(kappa):
    layer = LorentzLinear(4, 3, Lorentz(-1.0), Lorentz(kappa), "rescale")
    x = lorentz.expmap0(draw(30, 4), -1.0)
    here = lorentz.from_space(nn.functional.linear(x, layer.weight, layer.bias), -1.0)
    distances = lorentz.pairwise_dist(layer(x), layer(x), kappa)
    factor = (-1 / kappa) ** 0.5
    torch.testing.assert_close(distances, factor * lorentz.pairwise_dist(here, here, -1.0))


def test_recalibration_changes_the_order_of_distances():
    """The specification's counterexample."""
    x = lorentz.from_space(torch.tensor([[2.0, 2.5], [0.5, 0.5], [2.5, 1.5]]), -1.0)
    layer = LorentzLinear(2, 2, Lorentz(-1.0), Lorentz(-4.0), "recalibrate")
    y = with_weights(layer, torch.eye(3)[1:], torch.zeros(2))(x)
    before, after = lorentz.dist(x[:1], x[1:], -1.0), lorentz.dist(y[:1], y[1:], -4.0)
    assert before.tolist() == pytest.approx((1.230740, 1.037330), abs=1e-6)
    assert after.tolist() == pytest.approx((0.719035, 0.938048), abs=1e-6)


@pytest.mark.parametrize("mode", get_args(CurvatureMode))
def test_derivatives_of_the_linear_map(mode):
    """First and second, by points, weights and both curvatures."""
    layer = LorentzLinear(3, 2, Lorentz(-1.3, learnable=True), Lorentz(-0.6, learnable=True), mode)
    names, values = zip(*layer.named_parameters(), strict=True)
    s = draw(2, 4, 3, seed=1).requires_grad_()

    def function(s, *values):
        x = lorentz.from_space(s, -1.3)
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    inputs = s, *(v.detach().clone().requires_grad_() for v in values)
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def grads(output, layer):
    weights = draw(*output.shape, seed=9)
    return torch.autograd.grad((output * weights).sum(), list(layer.parameters()))


@pytest.mark.parametrize("kind", get_args(InputLift))
@pytest.mark.parametrize("mode", get_args(CurvatureMode))
@pytest.mark.parametrize("density", [0.05, 1.0])
def test_features_take_the_way_of_points(kind, mode, density):
    """Sparse or dense, `LorentzFeatureLinear` is `LorentzLinear` of the lifted features."""
    x = draw(40, 30) * (torch.rand(40, 30) < density)
    x[3], x[4] = 0.0, 20.0 * x[4].sign()
    spaces = Lorentz(-0.7, learnable=True), Lorentz(-1.6, learnable=True)
    features = LorentzFeatureLinear(30, 4, *spaces, mode, kind)
    points = LorentzLinear(30, 4, *spaces, mode)
    with_weights(points, features.weight, features.bias)
    expected = points(lift_definition(x, spaces[0].kappa, kind))
    torch.testing.assert_close(features(x), expected)
    torch.testing.assert_close(grads(features(x), features), grads(expected, points))
    features(x.clone().requires_grad_()).sum().backward()  # the dense way, through the factors


def lift_definition(x, kappa, kind):
    """The exponential at the origin with its length cut at 10, by the formula."""
    root = (-kappa).sqrt()
    length = x.square().sum(-1, keepdim=True)
    length = (length - 1 if kind == "exp0_ref" else length).clamp(min=1e-24).sqrt()
    return lorentz.from_space(torch.sinh(root * length.clamp(max=10)) / (root * length) * x, kappa)


@pytest.mark.parametrize("make", [nn.LayerNorm, nn.BatchNorm1d])
def test_functions_of_the_space_part(make):
    space = Lorentz(-0.5)
    x, norm = space.from_space(draw(6, 4)), make(4)
    torch.testing.assert_close(LorentzMap(norm, space)(x), space.from_space(norm(x[:, 1:])))
    merged = LorentzMap(nn.Sequential(norm, nn.ReLU(), nn.Linear(4, 3)), space)
    twice = LorentzMap(merged.function[2], space)(
        LorentzMap(nn.ReLU(), space)(LorentzMap(norm, space)(x))
    )
    torch.testing.assert_close(merged(x), twice)


@pytest.mark.parametrize("other", [-0.5, -3.0])
def test_residual_of_points_of_two_hyperboloids_is_their_normalised_sum(other):
    x, y = lorentz.expmap0(draw(9, 4), -1.2), lorentz.expmap0(draw(9, 4, seed=1), other)
    space = Lorentz(-1.2)
    mixed = midpoint(x, y, space, Lorentz(other))
    torch.testing.assert_close(mixed, lorentz.normalise(x + y, -1.2))
    torch.testing.assert_close(midpoint(x, x, space, space), x)


FAR = [0.0, 1e-20, 1.0, 1e2, 1e4]


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [-0.3, -1.0, -2.0])
def test_float32_results_lie_on_the_hyperboloid_and_gradients_are_finite(kappa):
    """Zero rows, rows of one sign, and points 10 / sqrt(-kappa) away."""
    space = Lorentz(kappa, learnable=True)
    s = torch.cat([size * draw(3, 16, seed=i) for i, size in enumerate(FAR)] + [-torch.ones(1, 16)])
    s.requires_grad_()
    x = space.from_space(s)
    features = LorentzFeatureLinear(16, 16, Lorentz(-1.5, learnable=True), space, "rescale", "exp0")
    linear = LorentzLinear(16, 16, space, space, "rescale")
    for point in [
        x,
        linear(x),
        features(s),
        midpoint(x, linear(x), space, space),
        midpoint(x, x, space, space),
        LorentzMap(nn.Sequential(nn.LayerNorm(16), nn.ReLU()), space)(x),
    ]:
        error = (square(point.double()) - 1 / space.kappa).abs()
        assert (error <= 1e-4 * point[:, 0].double().square().clamp(min=1)).all()
        leaves = [s, space.curvature.raw]
        for gradient in torch.autograd.grad(point.sum(), leaves, retain_graph=True):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("input_lift", get_args(InputLift))
@pytest.mark.parametrize("kappa", [-1e-2, -1.0, -100.0])
def test_lifts_do_not_overflow(input_lift, kappa):
    """They shorten vectors by the curvature too: sinh(100) is no number of single precision."""
    space = Lorentz(kappa, learnable=True).float()
    v = torch.tensor([[6e17, -8e17], [6, -8], [0.3, -0.4]], dtype=torch.float32, requires_grad=True)
    x = vectors_to_points(v, space, input_lift)
    assert x.isfinite().all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(x.sum(), [v, space.curvature.raw]))
    torch.testing.assert_close(4 * x[:, 1], -3 * x[:, 2])
    distances = lorentz.dist0(x, kappa) * (-kappa) ** 0.5
    assert (distances <= 20.1).all()

"""HTC, HRC, prototypes, residuals: the specification's numbers, identities, extremes."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from curvlab.errors import UsageError
from curvlab.layers import (
    LorentzFeatureLinear,
    LorentzLinear,
    LorentzMap,
    LorentzPrototypes,
    LorentzResidual,
)
from curvlab.layers.lorentz import OPERATORS, CurvatureMode, InputLift, midpoint, vectors_to_points
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds._geoopt import geoopt
from drawn import assert_finite, check_derivatives, draw, slopes

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
    check_derivatives(layer, lambda s: (lorentz.from_space(s, -1.3),), draw(2, 4, 3, seed=1))


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
    found = slopes(features(x), features.parameters())
    torch.testing.assert_close(found, slopes(expected, points.parameters()))
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
        assert_finite(point, [s, space.curvature.raw])


@pytest.mark.parametrize("input_lift", get_args(InputLift))
@pytest.mark.parametrize("kappa", [-1e-2, -1.0, -100.0])
def test_lifts_do_not_overflow(input_lift, kappa):
    """They shorten vectors by the curvature too: sinh(100) is no number of single precision."""
    space = Lorentz(kappa, learnable=True).float()
    v = torch.tensor([[6e17, -8e17], [6, -8], [0.3, -0.4]], dtype=torch.float32, requires_grad=True)
    x = vectors_to_points(v, space, input_lift)
    assert_finite(x, [v, space.curvature.raw])
    torch.testing.assert_close(4 * x[:, 1], -3 * x[:, 2])
    distances = lorentz.dist0(x, kappa) * (-kappa) ** 0.5
    assert (distances <= 20.1).all()


@pytest.mark.parametrize("k", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("inner", [None, "as_released"])
def test_logits_by_numpy_are_two_k_plus_twice_the_product_less_the_bias(k, inner):
    """`2 k + 2 <m, P> - b`, as released `2 k + 2 <m, P> / k - b`, which differ unless k = 1."""
    layer = LorentzPrototypes(4, 3, Lorentz(-1 / k, learnable=False), inner)
    with torch.no_grad():
        layer.bias.copy_(draw(3))
    s = draw(7, 4, seed=1).numpy()
    m = np.concatenate([np.sqrt(k + (s**2).sum(1, keepdims=True)), s], axis=1)
    prototypes, bias = layer.prototypes.detach().numpy(), layer.bias.detach().numpy()
    metric = np.diag([-1.0, 1, 1, 1, 1])
    product = m @ metric @ prototypes.T
    expected = 2 * k + 2 * product / (k if inner else 1) - bias
    found = layer(torch.tensor(m)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)  # a logit may be near 0
    assert (k == 1) == np.allclose(2 * product, 2 * product / k)


def test_prototypes_start_at_distance_one():
    space = Lorentz(-0.7, learnable=False)
    layer = LorentzPrototypes(8, 5, space)
    assert isinstance(layer.prototypes, geoopt.ManifoldParameter)
    assert not layer.bias.any()
    torch.testing.assert_close(space.dist0(layer.prototypes), torch.ones(5))


@pytest.mark.parametrize("inner", [None, "as_released"])
def test_derivatives_by_points_and_curvature(inner):
    """The prototypes' time follows a curvature that is learned."""
    layer = LorentzPrototypes(3, 5, Lorentz(-0.7), inner)
    points = lambda s: (lorentz.from_space(s, -0.7),)  # noqa: E731
    check_derivatives(layer, points, draw(4, 3), only="curvature")


KAPPAS = (-0.3, -1.0, -2.0)
FORMS = ("stable", "maps")


def pair(kappa, *shape):
    return [lorentz.expmap0(draw(*shape, seed=seed), kappa) for seed in (0, 1)]


def residual(kappa, operator="centroid", **options):
    return LorentzResidual(Lorentz(kappa), operator, **options)


@pytest.mark.parametrize("form", FORMS)
def test_points_that_differ_in_the_sign_of_an_axis_do_not_commute_by_transport(form):
    """LRN, Theorem 2.2: the two orders differ in that axis alone, by its sign."""
    x, y = (lorentz.from_space(torch.tensor((0.3, -0.4, s)), -1.0) for s in (0.7, -0.7))
    forward = residual(-1.0, "parallel_transport", form=form)(x, y)
    backward = residual(-1.0, "parallel_transport", form=form, reverse=True)(x, y)
    assert forward.tolist() == pytest.approx((1.5, 0.664681, -0.886241, 0.150921), abs=1e-6)
    torch.testing.assert_close(backward, forward * torch.tensor((1.0, 1, 1, -1)))


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_literal_and_stable_forms_agree_and_lie_on_the_hyperboloid(operator, kappa):
    x, y = pair(kappa, 50, 5)
    options = {} if operator == "parallel_transport" else {"weight_x": 0.7, "weight_y": 1.9}
    stable, literal = (residual(kappa, operator, form=form, **options)(x, y) for form in FORMS)
    torch.testing.assert_close(stable, literal, rtol=1e-9, atol=1e-9)
    off = (lorentz.inner(stable, stable) - 1 / kappa).abs()
    assert (off <= 4 * torch.finfo(off.dtype).eps * stable[:, 0].square()).all()  # of its terms
    assert (stable[:, 0] > 0).all()


@pytest.mark.parametrize("kappa", KAPPAS)
def test_parallel_transport_is_the_composition_of_maps_of_geoopt(kappa):
    x, y = pair(kappa, 50, 5)
    oracle = geoopt.Lorentz(torch.tensor(-1 / kappa))
    expected = oracle.expmap(x, oracle.transp0(x, oracle.logmap0(y)))
    torch.testing.assert_close(residual(kappa, "parallel_transport")(x, y), expected)
    expected = oracle.expmap0(oracle.logmap0(x) + oracle.logmap0(y))
    torch.testing.assert_close(residual(kappa, "tangent_space")(x, y), expected)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_identities_of_the_centroid(kappa):
    x, y = pair(kappa, 50, 5)
    a, b = 0.7, 1.9
    m = residual(kappa, weight_x=a, weight_y=b)(x, y)
    torch.testing.assert_close(m, residual(kappa, weight_x=b, weight_y=a)(y, x))
    torch.testing.assert_close(m, residual(kappa, weight_x=3 * a, weight_y=3 * b)(x, y))
    torch.testing.assert_close(m, residual(kappa, weight_x=b, weight_y=a, reverse=True)(y, x))
    torch.testing.assert_close(residual(kappa)(x, x), x)
    to_x, to_y, whole = (lorentz.dist(*ends, kappa) for ends in ((x, m), (m, y), (x, y)))
    torch.testing.assert_close(to_x + to_y, whole)
    s = (-kappa) ** 0.5
    ratio = (s * to_x).sinh() / (s * to_y).sinh()
    torch.testing.assert_close(ratio, torch.full((50,), b / a))
    farther = torch.maximum(lorentz.dist0(x, kappa), lorentz.dist0(y, kappa))
    assert (lorentz.dist0(m, kappa) <= farther + 1e-12).all()
    v = a * x + b * y
    norm = s * (-lorentz.inner(v, v)).sqrt()
    squared = a**2 + b**2 + 2 * a * b * kappa * lorentz.inner(x, y)
    torch.testing.assert_close(norm.square(), squared)
    assert (norm >= a + b).all()


def test_weights_of_parallel_transport_are_refused():
    with pytest.raises(UsageError, match="has no weights"):
        LorentzResidual(Lorentz(-1.0), "parallel_transport", "learned")


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("operator", OPERATORS)
def test_float32_gradients_are_finite_at_the_origin_far_out_and_where_points_coincide(operator):
    s = torch.cat([size * torch.randn(3, 4) for size in (0.0, 1e-20, 1.0, 1e3)]).requires_grad_()
    for order in (slice(None), torch.arange(12).flip(0)):
        x = lorentz.from_space(s, -1.0)
        assert_finite(residual(-1.0, operator)(x, x[order]), [s])

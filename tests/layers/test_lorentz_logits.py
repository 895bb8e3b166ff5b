"""Prototype regression: its formula, its derivatives, and Riemannian steps."""

import numpy as np
import pytest
import torch

from curvlab.layers import LorentzPrototypes
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds._geoopt import geoopt
from drawn import draw

pytestmark = pytest.mark.usefixtures("float64")


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
    raw = layer.space.curvature.raw

    def function(s, raw):
        values = {"space.curvature.raw": raw}
        return torch.func.functional_call(layer, values, (lorentz.from_space(s, -0.7),))

    inputs = draw(4, 3).requires_grad_(), raw.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(function, inputs)

"""Four residual operators: the specification's numbers, identities, limits, deep stacks."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.layers import LorentzResidual
from curvlab.layers.lorentz import OPERATORS
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds._geoopt import geoopt
from drawn import draw

pytestmark = pytest.mark.usefixtures("float64")

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
        (grad,) = torch.autograd.grad(residual(-1.0, operator)(x, x[order]).sum(), s)
        assert grad.isfinite().all()

"""Identities, limits, gradients and calling conventions of the stereographic model."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvlab.manifolds import PoincareBall
from curvlab.manifolds import stereographic as s
from curvlab.manifolds.curved_trig import tolerance
from drawn import draw64

draw = partial(draw64, size=0.3)
EXAMPLES = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def spaces(draw_value):
    """A curvature and three points inside its space, of any dimension."""
    kappa = draw_value(st.floats(-4, 4))
    dim = draw_value(st.integers(1, 6))
    coordinate = st.floats(-0.45, 0.45)
    points = [draw_value(st.lists(coordinate, min_size=dim, max_size=dim)) for _ in range(3)]
    scale = 1 / math.sqrt(dim * max(abs(kappa), 1))
    return kappa, *(scale * torch.tensor(p, dtype=torch.float64) for p in points)


@EXAMPLES
@given(spaces(), st.floats(-1.5, 1.5))
def test_scaling_and_halving(space, r):
    kappa, x, y, _ = space
    scaled = s.mobius_scalar_mul(r, x, kappa)
    torch.testing.assert_close(s.dist0(scaled, kappa), abs(r) * s.dist0(x, kappa))
    half = s.mobius_half(x, kappa)
    torch.testing.assert_close(half, s.mobius_scalar_mul(0.5, x, kappa))
    torch.testing.assert_close(s.mobius_add(half, half, kappa), x)
    middle = s.midpoint(torch.stack([x, y]), torch.ones(2, dtype=x.dtype), kappa)
    torch.testing.assert_close(s.dist(x, middle, kappa), s.dist(x, y, kappa) / 2)
    torch.testing.assert_close(s.dist(y, middle, kappa), s.dist(x, y, kappa) / 2)


@EXAMPLES
@given(spaces())
def test_transport(space):
    kappa, x, y, v = space
    there = s.transport(x, y, v, kappa)
    length_x = s.conformal_factor(x, kappa) * v.norm()
    length_y = s.conformal_factor(y, kappa) * there.norm()
    torch.testing.assert_close(length_x, length_y)
    torch.testing.assert_close(s.transport(y, x, there, kappa), v)
    torch.testing.assert_close(s.transport(x, x, v, kappa), v)
    torch.testing.assert_close(s.transport(0 * x, y, v, kappa), s.transport0(y, v, kappa))
    torch.testing.assert_close(s.transport(x, 0 * x, v, kappa), s.transport0_back(x, v, kappa))
    geodesic = s.transport(x, y, s.logmap(x, y, kappa), kappa)
    torch.testing.assert_close(geodesic, -s.logmap(y, x, kappa))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", [-2.0, -1e-3, 0.0, 1e-3, 2.0])
def test_fused_map_equals_map_and_projection(kappa, dtype):
    v = torch.cat([draw(20, 3, size=size) for size in (1e-3, 0.3, 3.0, 30.0)]).to(dtype)
    outputs, gradients = [], []
    for function in (s.expmap0_projected, lambda v, k: s.project(s.expmap0(v, k), k)):
        inputs = v.clone().requires_grad_(), torch.tensor(kappa, dtype=dtype, requires_grad=True)
        outputs.append(function(*inputs))
        gradients.append(torch.autograd.grad((outputs[-1] * v).sum(), inputs))
    # Next to a pole of the tangent a rounding of |v| is a thousand of the result.
    single = dtype == torch.float32
    bound = {"rtol": 2e-5, "atol": 1e-5} if single else {"rtol": 1e-7, "atol": 1e-7}
    torch.testing.assert_close(*outputs, **bound)
    torch.testing.assert_close(*gradients, **({"rtol": 1e-3, "atol": 1e-4} if single else {}))


def test_projection_leaves_points_inside_and_the_curved_outwards_alone():
    x = draw(50, 3, size=0.2, dtype=torch.float32)
    assert torch.equal(s.project(x, -1.0), x)
    assert torch.equal(s.project(100 * x, 1.0), 100 * x)
    assert torch.equal(s.project(100 * x, 0.0), 100 * x)
    far = s.project(100 * x, -4.0)
    assert (far.norm(dim=-1) <= 0.498 + 1e-6).all()


def test_distance_has_the_unit_gradient_next_to_the_diagonal():
    x = torch.tensor([0.3, 0.4], requires_grad=True)
    y = x.detach() + torch.tensor([1e-6, 0.0])
    s.dist(x, y, -1.0).backward()
    expected = s.conformal_factor(x.detach(), -1.0)
    torch.testing.assert_close(x.grad.norm(), expected, rtol=1e-3, atol=0)


def test_antipodes_on_the_sphere():
    """The distance is pi / sqrt(kappa), exact to float32 although arcsin is flat there."""
    x = torch.tensor([0.3, 0.4])
    antipode = -x / (0.25 * 4.0)
    assert s.dist(x, antipode, 4.0).item() == pytest.approx(math.pi / 2, rel=1e-6)
    pair = s.pairwise_dist(x[None], antipode[None], 4.0)
    assert pair.item() == pytest.approx(math.pi / 2, rel=1e-6)


@pytest.mark.parametrize("size", [2e19, 1e25, 1e38])
@pytest.mark.parametrize("kappa", [-1.0, 1.0])
def test_vectors_whose_squares_overflow_keep_their_direction(kappa, size):
    """Such a vector leads to the rim of a ball; such a point is the antipode of the origin."""
    direction = torch.tensor([0.6, -0.8])
    v = (size * direction).requires_grad_()
    if kappa < 0:
        rim = 1 - tolerance(torch.float32).boundary
        ball = PoincareBall()
        expected = {s.expmap0: 1.0, s.expmap0_projected: rim, s.project: rim} | {
            lambda v, _: ball.expmap0_unprojected(v): 1.0,
            lambda v, _: ball.expmap0(v): rim,
            lambda v, _: ball.project(v): rim,
            lambda v, _: ball.expmap0_and_log(v)[0]: rim,
            lambda v, _: ball.expmap0_and_log(v)[1]: math.atanh(rim),
            lambda v, _: ball.clamp_tangent(v): math.atanh(rim),
            lambda v, _: ball.expmap0_sum(v, torch.zeros(2)): rim,
            lambda v, _: ball.expmap0_sum(torch.zeros(2), v): rim,
        }
    else:
        expected = {s.logmap0: math.pi / 2, s.mobius_half: 1.0}
    for function, length in expected.items():
        value = function(v, kappa)
        torch.testing.assert_close(value, length * direction)
        assert torch.autograd.grad(value.sum(), v)[0].isfinite().all()


@pytest.mark.parametrize("radius", [1e2, 1e4])
def test_near_the_antipode_of_the_origin_float32_keeps_its_digits(radius):
    x, v, zero = torch.tensor([0.6, 0.8]) * radius, torch.tensor([1.0, -2.0]), torch.zeros(2)
    torch.testing.assert_close(s.mobius_add(x, zero, 1.0), x)
    torch.testing.assert_close(s.mobius_add(zero, x, 1.0), x)
    torch.testing.assert_close(s.transport(x, zero, v, 1.0), s.transport0_back(x, v, 1.0))
    torch.testing.assert_close(s.transport(zero, x, v, 1.0), s.transport0(x, v, 1.0))

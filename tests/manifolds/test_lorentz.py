"""The Lorentz model: 50-digit arithmetic far out, geoopt near by, isometry with the ball."""

import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import manifold_reference as reference
from curvlab.manifolds import lorentz, stereographic
from drawn import draw64 as draw
from manifold_reference import dot, exact, mpf

EXAMPLES = settings(max_examples=25, deadline=None, derandomize=True)
CURVATURES = [-1e-8, -1e-5, -1e-3, -0.1, -1.0, -100.0]
RADII = [1e-4, 0.1, 1.0, 3.0, 6.0, 9.0, 12.0, 15.0]


def far_points(kappa, dtype):
    """Points at `RADII` / sqrt(-kappa), and neighbours of each along the ray and across it."""
    direction = torch.nn.functional.normalize(draw(len(RADII), 3), dim=-1)
    radius = torch.tensor(RADII, dtype=torch.float64)[:, None]
    space = (torch.sinh(radius) / (-kappa) ** 0.5 * direction).to(dtype)
    across = space + 1e-3 * space.norm(dim=-1, keepdim=True) * draw(len(RADII), 3, seed=1).to(dtype)
    x = torch.cat([space, space, space, space])
    y = torch.cat([space.roll(1, 0), space * (1 - 1e-5), across, 0 * space])
    k = torch.tensor(kappa, dtype=dtype)
    return lorentz.from_space(x, k), lorentz.from_space(y, k), k


@pytest.mark.parametrize("kappa", CURVATURES)
def test_distance_and_its_derivative(kappa, dtype):
    points, others, k = far_points(kappa, dtype)
    exact_k = mpf(k.item())
    for x, y in zip(points, others, strict=True):
        a, b = exact(x[1:]), exact(y[1:])
        curvature = k.clone().requires_grad_()
        distance = lorentz.dist(x, y, curvature)
        (slope,) = torch.autograd.grad(distance, curvature)
        expected = reference.lorentz_dist(a, b, exact_k)
        assert abs(distance.item() / float(expected) - 1) < 1e-5
        expected = reference.slope(lambda k, a=a, b=b: reference.lorentz_dist(a, b, k), exact_k)
        assert slope.item() == pytest.approx(float(expected), rel=1e-3)


@pytest.mark.parametrize("kappa", CURVATURES)
def test_a_point_is_at_distance_zero_from_itself(kappa, dtype):
    x, _, k = far_points(kappa, dtype)
    x.requires_grad_()
    assert (lorentz.dist(x, x, k) == 0).all()
    distances = lorentz.pairwise_dist(x, x, k)
    assert (distances.diagonal() == 0).all()
    for value in (lorentz.dist(x, x, k).sum(), distances.sum()):
        assert torch.autograd.grad(value, x)[0].isfinite().all()


@st.composite
def spaces(draw_value):
    kappa = draw_value(st.floats(-4, -0.05))
    dim = draw_value(st.integers(1, 5))
    coordinates = st.lists(st.floats(-2, 2), min_size=dim, max_size=dim)
    vectors = [torch.tensor(draw_value(coordinates), dtype=torch.float64) for _ in range(3)]
    return kappa, vectors[0], vectors[1], vectors[2]


@EXAMPLES
@given(spaces())
def test_isometric_to_the_ball(space):
    kappa, u, v, w = space
    x, y = lorentz.expmap0(u, kappa), lorentz.expmap0(v, kappa)
    a, b = lorentz.to_stereographic(x, kappa), lorentz.to_stereographic(y, kappa)
    torch.testing.assert_close(lorentz.from_stereographic(a, kappa), x)
    torch.testing.assert_close(lorentz.inner(x, x), torch.tensor(1 / kappa).double())
    assert torch.equal(lorentz.space(lorentz.project(3 * x, kappa)), lorentz.space(3 * x))
    torch.testing.assert_close(lorentz.dist(x, y, kappa), stereographic.dist(a, b, kappa))
    # The ball's tangent vectors at 0 are half as long in coordinates.
    torch.testing.assert_close(a, stereographic.expmap0(u / 2, kappa))
    torch.testing.assert_close(lorentz.logmap0(x, kappa), 2 * stereographic.logmap0(a, kappa))
    points = torch.stack([x, y, lorentz.expmap0(w, kappa)])
    weights = torch.tensor([0.3, 1, 2], dtype=torch.float64)
    ball = stereographic.midpoint(lorentz.to_stereographic(points, kappa), weights, kappa)
    centroid = lorentz.centroid(points, weights, kappa)
    torch.testing.assert_close(lorentz.to_stereographic(centroid, kappa), ball)


@EXAMPLES
@given(spaces(), st.floats(-4, -0.05))
def test_change_of_curvature_scales_distances(space, other):
    kappa, u, v, _ = space
    x, y = lorentz.expmap0(u, kappa), lorentz.expmap0(v, kappa)
    x2, y2 = (lorentz.change_curvature(p, kappa, other) for p in (x, y))
    torch.testing.assert_close(lorentz.inner(x2, x2), torch.tensor(1 / other).double())
    expected = lorentz.dist(x, y, kappa) * (kappa / other) ** 0.5
    torch.testing.assert_close(lorentz.dist(x2, y2, other), expected)
    torch.testing.assert_close(x2, x * (kappa / other) ** 0.5)


@pytest.mark.parametrize("kappa", [-1.0, -0.01])
@pytest.mark.parametrize("radius", [10.0, 40.0, 50.0, 80.0])
def test_logarithm_at_the_origin_as_far_as_float32_goes(radius, kappa):
    """Its slope along the ray is 1 / sqrt(1 - kappa s^2), though s^2 and the slope overflow."""
    k = torch.tensor(kappa, requires_grad=True)
    direction = torch.tensor([0.6, 0.8], dtype=torch.float64)
    s = (direction * math.sinh(radius) / (-kappa) ** 0.5).float().requires_grad_()
    v = lorentz.logmap0(torch.cat([torch.ones(1), s]), k)
    torch.testing.assert_close(v, (radius * direction).float() / (-kappa) ** 0.5)
    along, by_kappa = torch.autograd.grad(v @ direction.float(), [s, k])
    torch.testing.assert_close(along * math.cosh(radius), direction.float(), rtol=1e-4, atol=0)
    # With s held: d(arsinh(r s) / r)/dr = (tanh - radius) / r^2 of r = sqrt(-kappa).
    slope = (radius - math.tanh(radius)) / (2 * (-kappa) ** 1.5)
    assert by_kappa.item() == pytest.approx(slope, rel=1e-5)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kappa", [-2.0, -0.3])
def test_the_midpoint_is_the_centroid_of_two_points(kappa):
    x, y = (lorentz.expmap0(draw(20, 4, seed=seed), kappa) for seed in (0, 1))
    for weight in (0.0, 0.2, 0.5, 1.0):
        found = lorentz.midpoint(x, y, kappa, weight)
        weights = torch.tensor([1 - weight, weight])
        torch.testing.assert_close(found, lorentz.centroid(torch.stack([x, y], -2), weights, kappa))
        swapped = lorentz.midpoint(y, x, kappa, 1 - weight)
        torch.testing.assert_close(found, swapped)
    torch.testing.assert_close(lorentz.midpoint(x, y, kappa, 0.0), x)


@pytest.mark.usefixtures("float64")
def test_worked_example_of_the_centroid():
    """Three points of the specification, for which the Einstein midpoint is the same."""
    x = lorentz.from_space(torch.tensor([[1.0, 0], [0, 2], [-0.5, 0.5]]), -1.0)
    weights = torch.tensor([0.2, 0.5, 0.3])
    found = lorentz.centroid(x, weights, -1.0)
    assert found.tolist() == pytest.approx((1.317323, 0.037248, 0.856711), abs=1e-6)
    klein, gamma = x[:, 1:] / x[:, :1], x[:, 0]
    einstein = (weights * gamma) @ klein / (weights @ gamma)
    torch.testing.assert_close(found[1:] / found[0], einstein)
    summed = weights @ x
    torch.testing.assert_close(lorentz.normalise(summed, -1.0), found)
    torch.testing.assert_close(lorentz.normalise(7.3 * summed, -1.0), found)


@pytest.mark.parametrize("kappa", [-1e-3, -1.0, -100.0])
@pytest.mark.parametrize("radius", [1e-3, 1.0, 5.0, 9.0])
def test_midpoints_in_float32_far_from_the_origin(kappa, radius):
    """Neighbours, points on one ray, and points anywhere, against the sum in 50 digits."""
    size = float(torch.tensor(radius).sinh()) / (-kappa) ** 0.5
    unit = torch.nn.functional.normalize(draw(4, 3), dim=-1).float()
    x = lorentz.from_space(size * unit, kappa)
    for other in (size * unit.roll(1, 0), 0.5 * size * unit, size * (1 - 1e-5) * unit, 0 * unit):
        y = lorentz.from_space(other, kappa)
        found = lorentz.midpoint(x, y, kappa)[:, 1:]
        for a, b, m in zip(x[:, 1:], y[:, 1:], found, strict=True):
            expected = exact_midpoint(exact(a), exact(b), mpf(kappa))
            error = max(abs(mpf(c.item()) - e) for c, e in zip(m, expected, strict=True))
            # Rounding a point moves it by up to 2^-24 cosh(radius) across the ray.
            allowed = 2e-6 + 2.0**-24 * float(mpmath.cosh(radius))
            assert error <= allowed * max(map(abs, expected))


def exact_midpoint(a, b, kappa):
    """Space part of the midpoint of the points with space parts a and b."""
    times = [mpmath.sqrt(dot(s, s) - 1 / kappa) for s in (a, b)]
    total = [p + q for p, q in zip(a, b, strict=True)]
    square = sum(times) ** 2 - dot(total, total)
    return [c / mpmath.sqrt(-kappa * square) for c in total]

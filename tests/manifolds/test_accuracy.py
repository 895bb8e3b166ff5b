"""Distances and derivatives against 60-digit arithmetic, on the very numbers that are stored.

The errors asserted are stricter than promised: the rounding of the points is not excused, because
the reference gets the rounded points.
"""

import math

import pytest
import torch
from torch.nn import functional

import manifold_reference as reference
from curvlab.manifolds import PoincareBall, stereographic
from curvlab.manifolds.curved_trig import sin_ratio, tolerance
from manifold_reference import dot, exact, mp, mpf, relative_error

HYPERBOLIC_RADII = [1e-4, 0.1, 1, 3, 6, 9, 12, 15]
SPHERICAL_RADII = [1e-4, 0.1, 0.7, 1.5, 2.5, 3.1]


def points_at(kappa: float, radii: list[float], dtype: torch.dtype, dim: int = 4) -> torch.Tensor:
    """Points at `radii` / sqrt|kappa| from the origin, those that the dtype can represent."""
    generator = torch.Generator().manual_seed(0)
    unit = 1 / math.sqrt(abs(kappa)) if kappa else 1.0
    points = []
    for radius in radii:
        direction = torch.randn(dim, generator=generator, dtype=torch.float64)
        v = exact(functional.normalize(direction, dim=0) * radius * unit / 2)
        x = torch.tensor([float(c) for c in reference.expmap0(v, mpf(kappa))]).to(dtype)
        if 1 + mpf(kappa) * dot(exact(x), exact(x)) > 0:
            points.append(x)
    return torch.stack(points)


@pytest.fixture(scope="module")
def points(kappa, dtype):
    return points_at(kappa, HYPERBOLIC_RADII if kappa <= 0 else SPHERICAL_RADII, dtype)


@pytest.fixture(scope="module")
def curvature(kappa, dtype):
    return torch.tensor(kappa, dtype=dtype, requires_grad=True)


@pytest.fixture(scope="module")
def pairs(points):
    """All orders of distances: far, near neighbours along the ray and across it, the origin."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(points.shape, generator=generator, dtype=points.dtype)
    across = points + 1e-2 * points.norm(dim=-1, keepdim=True) * noise
    x = torch.cat([points, points, points, points])
    y = torch.cat([points.roll(1, 0), points * (1 - 1e-5), across * 0.98, 0 * points])
    return x, y


@pytest.mark.parametrize("power", [1, 2])
def test_distance_and_its_derivative(pairs, curvature, power):
    function = stereographic.dist if power == 1 else stereographic.sqdist
    k = mpf(curvature.item())
    for x, y in zip(*pairs, strict=True):
        a, b = exact(x), exact(y)
        if 1 + k * dot(b, b) <= 0:
            continue
        distance = function(x, y, curvature)
        (slope,) = torch.autograd.grad(distance, curvature)
        assert relative_error(distance.item(), reference.dist(a, b, k) ** power) < 1e-5
        expected = reference.slope(lambda k, a=a, b=b: reference.dist(a, b, k) ** power, k)
        assert relative_error(slope.item(), expected) < 1e-4


def test_distance_to_the_origin(points, curvature):
    k = mpf(curvature.item())
    origin = [mpf(0)] * points.shape[-1]
    for x in points:
        expected = reference.dist(exact(x), origin, k)
        assert relative_error(stereographic.dist0(x, curvature).item(), expected) < 1e-5


def test_pairwise_distances_lose_only_what_rounding_the_points_loses(pairs, curvature):
    x, y = pairs
    k = mpf(curvature.item())
    inside = 1 + curvature.item() * y.double().square().sum(-1) > 0
    x, y = x[inside], y[inside]
    distances = stereographic.pairwise_dist(x, y, curvature)
    factor_x, factor_y = (stereographic.conformal_factor(p, curvature) for p in (x, y))
    eps = torch.finfo(x.dtype).eps
    for i in range(0, len(x), 5):
        for j in range(len(y)):
            expected = reference.dist(exact(x[i]), exact(y[j]), k)
            moved = (factor_x[i] * x[i].norm() + factor_y[j] * y[j].norm()).item()
            allowed = 1e-5 * float(expected) + eps * moved
            if x.dtype == torch.float64:  # the product itself is no wider than that
                allowed += 4 * eps * moved**2 / (float(expected) or 1.0)
            assert abs(distances[i, j].item() - float(expected)) < allowed


@pytest.mark.parametrize("name", ["expmap0", "logmap0"])
def test_maps_at_the_origin_and_their_derivatives(name, points, curvature):
    function, expected = getattr(stereographic, name), getattr(reference, name)
    k = mpf(curvature.item())
    for x in points:
        a = exact(x)
        if name == "expmap0" and k * dot(a, a) > 2:
            continue  # near and beyond the pole of the tangent, where the map wraps around
        value = function(x, curvature)
        assert relative_error(value, expected(a, k)) < 1e-6
        (slope,) = torch.autograd.grad(value @ x, curvature)
        exact_slope = reference.slope(lambda k, a=a: dot(expected(a, k), a), k)
        assert relative_error(slope.item(), exact_slope) < 1e-4


def test_logarithm_at_a_point(pairs, curvature):
    k = mpf(curvature.item())
    for x, y in zip(*pairs, strict=True):
        a, b = exact(x), exact(y)
        if 1 + k * dot(b, b) <= 0:
            continue
        value = stereographic.logmap(x, y, curvature)
        # Towards the antipode of x the direction is the better defined the farther from it.
        assert relative_error(value, reference.logmap(a, b, k)) < (1e-3 if k > 0 else 1e-4)


SCALARS = ["tan_k", "artan_k", "sin_k", "arsin_k"]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("kappa", [s * 10.0**e for e in range(-9, 3) for s in (1, -1)] + [0.0])
def test_scalar_functions_on_both_sides_of_zero(name, kappa, dtype):
    function, expected = getattr(stereographic, name), getattr(reference, name)
    curvature = torch.tensor(kappa, dtype=dtype, requires_grad=True)
    for size in (1e-3, 0.2, 0.24, 0.5, 0.9, 0.99):  # the series ends between 0.2 and 0.24
        x = torch.tensor(size / max(abs(kappa), 1e-2) ** 0.5, dtype=dtype)
        value = function(x, curvature)
        (slope,) = torch.autograd.grad(value, curvature)
        a, k = mpf(x.item()), mpf(curvature.item())
        expected_slope = reference.slope(lambda k, a=a: expected(a, k), k)
        single = dtype == torch.float32
        assert relative_error(value.item(), expected(a, k)) < (1e-6 if single else 1e-13)
        assert relative_error(slope.item(), expected_slope) < (1e-4 if single else 1e-7)


def test_sine_reaches_as_far_as_the_dtype(dtype):
    for z in (-(80.0**2), 80.0**2, -(700.0**2)):
        if z < -1e4 and dtype == torch.float32:
            continue
        argument = torch.tensor(z, dtype=dtype, requires_grad=True)
        value = sin_ratio(argument)
        (slope,) = torch.autograd.grad(value, argument)

        def ratio(z):
            return reference.sin_k(mpf(1), z)

        assert relative_error(value.item(), ratio(mpf(z))) < 2e-5
        assert relative_error(slope.item(), reference.slope(ratio, mpf(z))) < 2e-5


@pytest.mark.parametrize("size", [0.5, 3.0, 30.0])
def test_gradient_by_a_bias_at_the_rim(size, dtype):
    """Of log_0(exp_0(u) (+) exp_0(b)), as in a linear layer: the projections have exact slopes.

    A finite difference in float64 does not show it: it divides the rounding at the rim by a step.
    """
    ball = PoincareBall(1, -1.0, max=None).to(dtype)
    u, b, w = (torch.randn(4, dtype=torch.float64).to(dtype) for _ in range(3))
    u, b = size * functional.normalize(u, dim=0), (0.3 * b).requires_grad_()
    value = ball.logmap0(ball.expmap0_sum(u[None], b)[0]) @ w
    reach = 1 - mpf(tolerance(dtype).boundary)

    def projected(x):
        norm = mp.sqrt(dot(x, x))
        return reference.scale(reach / norm, x) if norm > reach else x

    def exact_value(step, axis):
        moved = [c + step * (i == axis) for i, c in enumerate(exact(b))]
        x, y = (projected(reference.expmap0(v, mpf(-1))) for v in (exact(u), moved))
        total = projected(reference.mobius_add(x, y, mpf(-1)))
        return dot(reference.logmap0(total, mpf(-1)), exact(w))

    expected = [reference.slope(lambda h, i=i: exact_value(h, i), mpf(0)) for i in range(4)]
    (gradient,) = torch.autograd.grad(value, b)
    assert relative_error(gradient, expected) < (1e-6 if dtype == torch.float64 else 2e-3)

"""The weighted midpoint: of vectors in 50 digits, on both halves of the sphere, where it is smooth.

The reference adds up the points as vectors of the sphere or the hyperboloid and never divides by
what may be 0.
"""

import math

import pytest
import torch
from torch.nn import functional

from curvlab.manifolds import stereographic as s
from curvlab.manifolds.gyro import half_quotient
from manifold_reference import dot, exact, mp, mpf, scale

KAPPAS = [-100.0, -1.0, -1e-3, -1e-8, 0.0, 1e-8, 1e-3, 1.0, 100.0]


def of_vectors(points, weights, kappa):
    """Midpoint of stereographic points: that of the vectors they stand for, projected back."""

    def summed(factors, x=points):
        terms = [scale(f * w, p) for f, w, p in zip(factors, weights, x, strict=True)]
        return [mp.fsum(column) for column in zip(*terms, strict=True)]

    if kappa == 0:
        return scale(1 / mp.fsum(weights), summed([1] * len(points)))
    root = mp.sqrt(abs(kappa))
    factors = [2 / (1 + kappa * dot(x, x)) for x in points]
    space = summed(factors)
    time = summed([f - 1 for f in factors], [[1 / root]] * len(points))[0]
    length = root * mp.sqrt(time**2 + mp.sign(kappa) * dot(space, space))
    return scale(1 / (length + root * time), space)


def cap(kappa, angle, width, count=6, dim=3, dtype=torch.float64):
    """Points of the sphere at most `width` from one that is `angle` from the origin."""
    unit = kappa**-0.5
    middle = functional.normalize(torch.randn(dim, dtype=torch.float64), dim=0)
    step = torch.randn(count, dim, dtype=torch.float64)
    step = functional.normalize(step, dim=1) * torch.linspace(0.1, width, count).double()[:, None]
    x = middle * math.tan(angle / 2) * unit
    return s.mobius_add(x, s.expmap0(step * unit / 2, kappa), kappa).to(dtype)


def weights(count=6, dtype=torch.float64):
    return torch.linspace(0.2, 1.7, count).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("angle", [0.3, 1.2, math.pi / 2, 1.9, 2.6, 3.1])
def test_in_50_digits(kappa, angle, dtype):
    """To a few roundings in the length that the sphere gives to the difference."""
    if kappa > 0:
        points = cap(kappa, angle, 0.8, dtype=dtype)
    else:
        unit = abs(kappa) ** -0.5 if kappa else 1.0
        points = s.expmap0(cap(1.0, min(angle, 2), 0.8) * unit, kappa).to(dtype)
        points = s.project(points, kappa)
    w = weights(dtype=dtype)
    found = exact(s.midpoint(points, w, kappa))
    expected = of_vectors(exact(points), exact(w), mpf(kappa))
    difference = [a - b for a, b in zip(found, expected, strict=True)]
    unit = mp.sqrt(abs(mpf(kappa))) if kappa else 1
    error = unit * mp.sqrt(dot(difference, difference))
    factor = 2 / (1 + kappa * dot(expected, expected))
    assert error * factor < 60 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", [-4.0, -1.0, 0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.6, 0.99, 1.0, 1.01, 2.0, 50.0, 1e4])
def test_one_point_is_its_own_midpoint(radius, kappa, dtype):
    """Wherever it is; as published, beyond the equator its antipode is."""
    if kappa < 0 and radius >= 1:
        return
    unit = abs(kappa) ** -0.5 if kappa else 1.0
    x = radius * unit * torch.tensor([[0.6, -0.8]], dtype=dtype)
    close = {"rtol": 30 * torch.finfo(dtype).eps, "atol": 1e-30}
    if kappa < 0 and radius == 0.99:
        close["rtol"] *= 30
    for weight in (2.5, -2.5):
        found = s.midpoint(x, torch.tensor([weight], dtype=dtype), kappa)
        torch.testing.assert_close(found, x[0], **close)


@pytest.mark.parametrize("angle", [0.3, 1.2, 1.9, 2.6])
@pytest.mark.parametrize("kappa", [0.25, 1.0, 4.0])
def test_the_printed_quotient_is_the_antipode_beyond_the_equator(kappa, angle):
    """Half of a Moebius multiple lies on the origin's half of the sphere, whatever the points."""
    points, w = cap(kappa, angle, 0.2), weights()
    middle = s.midpoint(points, w, kappa)
    factor = s.conformal_factor(points, kappa)
    numerator, denominator = (w * factor) @ points, (w * (factor - 1)).sum()
    published = s.midpoint_from_sums(numerator, denominator, kappa, published=True)
    half = s.mobius_half(numerator / denominator, kappa)
    torch.testing.assert_close(published, half)
    assert (denominator < 0) == (angle > math.pi / 2)
    opposite = -middle / (kappa * middle.square().sum())
    torch.testing.assert_close(published, opposite if angle > math.pi / 2 else middle)
    assert s.dist(middle, points, kappa).max() * kappa**0.5 < 0.4
    reach = s.dist(published, points, kappa).min() * kappa**0.5
    assert (reach > 2.7) if angle > math.pi / 2 else (reach < 0.4)


def largest_jump(values):
    """Largest difference of neighbours, over the mean one: near 1 for a curve without jumps."""
    steps = values.reshape(len(values), -1).diff(dim=0).abs().amax(1)
    return (steps.max() / steps.mean()).item()


@pytest.mark.parametrize("published", [False, True])
def test_is_smooth_in_the_curvature_where_the_points_cross_the_equator(published):
    """Values, derivatives by curvature and by points; the published quotient jumps."""
    kappa = torch.linspace(-0.5, 2.0, 4001, dtype=torch.float64).requires_grad_()
    points = torch.tensor([[1.0, 0.2], [1.1, -0.3], [0.9, 0.5]], dtype=torch.float64)
    points = points.expand(len(kappa), 3, 2).clone().requires_grad_()
    factor = s.conformal_factor(points, kappa[:, None])
    sums = (factor[..., None] * points).sum(1), (factor - 1).sum(1)
    assert (sums[1] > 0).any()
    assert (sums[1] < 0).any()
    middle = s.midpoint_from_sums(*sums, kappa, published=published)
    slopes = torch.autograd.grad(middle.sum(), (kappa, points))
    jumps = [largest_jump(values.detach()) for values in (middle, *slopes)]
    assert (max(jumps) > 100) if published else (max(jumps) < 20)


CASES = {
    "before the equator": (1.0, [0.7, -0.4, 1.3]),
    "beyond it": (1.0, [0.7, -0.4, -1.3]),
    "far beyond it": (0.3, [1e-3, -2e-3, -1.3]),
    "on it": (2.0, [0.7, -0.4, 0.0]),
    "flat": (0.0, [0.7, -0.4, 1.3]),
    "hyperbolic": (-1.0, [0.7, -0.4, 1.3]),
    "hyperbolic, of both signs": (-1.0, [0.7, -0.4, -1.3]),
}


@pytest.mark.parametrize("case", CASES)
def test_first_and_second_derivatives(case):
    kappa, sums = CASES[case]
    scale = abs(sums[0])
    inputs = (
        torch.tensor(sums, dtype=torch.float64, requires_grad=True),
        torch.tensor([kappa], dtype=torch.float64, requires_grad=True),
    )
    small = {"eps": 1e-6 * scale, "atol": 1e-5 / scale**3, "rtol": 1e-4}
    assert torch.autograd.gradcheck(half_quotient, inputs, **small)
    if case != "on it":  # differences of a difference cross the equator, which is smooth
        assert torch.autograd.gradgradcheck(half_quotient, inputs, **small)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_derivatives_are_finite(dtype, published):
    """At the antipode of the origin, where the sums vanish, and outside the ball, twice."""
    numerator, denominator, kappa = torch.cartesian_prod(
        torch.tensor([0.0, 1e-30, 1e-12, 2.0], dtype=dtype),
        torch.tensor([-3.0, -1e-12, -0.0, 0.0, 1e-30, 3.0], dtype=dtype),
        torch.tensor([-1.0, -1e-8, 0.0, 1e-8, 1.0, 100.0], dtype=dtype),
    ).unbind(1)
    sums = torch.stack([0.6 * numerator, 0.8 * numerator, denominator], dim=1)
    inputs = sums.requires_grad_(), kappa[:, None].clone().requires_grad_()
    value = half_quotient(*inputs, published)
    gradients = torch.autograd.grad(value.sum(), inputs, create_graph=True)
    assert value.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    if dtype == torch.float64:
        away = denominator.abs() > 1
        second = torch.autograd.grad(gradients[0][away].sum(), inputs)
        assert all(gradient[away].isfinite().all() for gradient in second)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(
    ("dtype", "power"), [(torch.float32, 48), (torch.float32, 64), (torch.float64, 520)]
)
@pytest.mark.parametrize("case", CASES)
def test_long_sums_have_the_point_and_gradients_of_shorter_ones(case, dtype, power, published):
    """The formula has degree 0 in its sums, and their gradients degree -1."""
    kappa, sums = CASES[case]
    unit = torch.tensor(sums, dtype=torch.float64) / max(map(abs, sums))
    found = []
    for factor in (1.0, 2.0**power):
        x = (factor * unit).to(dtype).requires_grad_()
        k = torch.tensor([kappa], dtype=dtype, requires_grad=True)
        value = half_quotient(x, k, published)
        by_sums, by_kappa = torch.autograd.grad(value.sum(), (x, k))
        found.append((value.detach(), by_sums.double() * factor, by_kappa))
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kappa", [-0.01, -1e-6, 0.0, 1e-6, 0.01])
def test_weights_of_both_signs_are_taken_with_the_sign_of_their_sum(kappa):
    """Near flat space an affine combination, however many of the weights are negative."""
    x = 0.05 * torch.randn(4, 3, dtype=torch.float64)
    w = torch.tensor([1.0, -0.6, 0.5, -0.3], dtype=torch.float64)
    middle = s.midpoint(x, w, kappa)
    torch.testing.assert_close(middle, w @ x / w.sum(), rtol=0, atol=5e-3 * abs(kappa) + 1e-12)
    torch.testing.assert_close(s.midpoint(x, -w, kappa), middle)

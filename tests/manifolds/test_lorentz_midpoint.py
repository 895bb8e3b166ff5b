"""The midpoint of two Lorentz points against the centroid, its symmetries, and 50 digits."""

import mpmath
import pytest
import torch

from curvlab.manifolds import lorentz
from drawn import draw
from manifold_reference import dot, exact, mpf

pytestmark = pytest.mark.usefixtures("float64")


def pair(kappa, *shape):
    return [lorentz.expmap0(draw(*shape, seed=seed), kappa) for seed in (0, 1)]


@pytest.mark.parametrize("kappa", [-2.0, -0.3])
def test_it_is_the_centroid_of_two_points(kappa):
    x, y = pair(kappa, 20, 4)
    for weight in (0.0, 0.2, 0.5, 1.0):
        found = lorentz.midpoint(x, y, kappa, weight)
        weights = torch.tensor([1 - weight, weight])
        torch.testing.assert_close(found, lorentz.centroid(torch.stack([x, y], -2), weights, kappa))
        swapped = lorentz.midpoint(y, x, kappa, 1 - weight)
        torch.testing.assert_close(found, swapped)
    torch.testing.assert_close(lorentz.midpoint(x, y, kappa, 0.0), x)


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


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [-1e-3, -1.0, -100.0])
@pytest.mark.parametrize("radius", [1e-3, 1.0, 5.0, 9.0])
def test_float32_far_from_the_origin(kappa, radius):
    """Neighbours, points on one ray, and points anywhere, against the sum in 50 digits."""
    size = float(torch.tensor(radius).sinh()) / (-kappa) ** 0.5
    unit = torch.nn.functional.normalize(draw(4, 3), dim=-1)
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

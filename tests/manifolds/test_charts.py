"""Charts against 60-digit arithmetic, near the pole, the rim and the equator of their targets."""

import itertools

import mpmath as mp
import pytest
import torch

from curvlab.manifolds import charts

mp.mp.dps = 60
ANGLES = (0.0, 1e-9, 1e-5, 1e-2, 0.7, 1.5707963, 2.5, 3.1415926, 3.141592653589793)
"""From the last axis, the direction of the half-space's point at infinity."""
HYPERBOLIC = (-4.0, -1.0, -0.05)
SPHERICAL = (4.0, 1.0, 0.05)
RADII = {
    -1: (0.0, 1e-6, 0.3, 2.0, 3.0, 6.0, 12.0),
    1: (0.0, 1e-6, 0.3, 1.5, 1.57079, 1.6, 3.0, 3.14159),
}
"""Distances from the origin times the root of |kappa|: up to the rim, over the equator."""


def points(kappa, dim=3):
    """Points `[radii x angles, dim]` in float64, each turned around the last axis by its number."""
    rows = []
    for number, (radius, angle) in enumerate(
        itertools.product(RADII[1 if kappa > 0 else -1], ANGLES)
    ):
        tangent = mp.tan if kappa > 0 else mp.tanh
        length = tangent(mp.mpf(radius) / 2) / mp.sqrt(abs(kappa))
        side, last = length * mp.sin(angle), length * mp.cos(angle)
        rows.append([side * mp.cos(number), side * mp.sin(number), last][-dim:])
    return torch.tensor([[float(c) for c in row] for row in rows], dtype=torch.float64)


def exactly(x):
    """Coordinates as mpmath's numbers."""
    return [mp.mpf(c) for c in x.tolist()]


def dot(x, y):
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))


def stereographic_distance(x, y, kappa):
    apart = dot(*[[a - b for a, b in zip(x, y, strict=True)]] * 2)
    u = mp.sqrt(apart / ((1 + kappa * dot(x, x)) * (1 + kappa * dot(y, y))))
    root = mp.sqrt(abs(kappa))
    return 2 * (mp.asin(min(root * u, mp.mpf(1))) if kappa > 0 else mp.asinh(root * u)) / root


def half_space_distance(x, y, kappa):
    apart = dot(*[[a - b for a, b in zip(x, y, strict=True)]] * 2)
    return 2 * mp.asinh(mp.sqrt(apart / (4 * x[-1] * y[-1]))) / mp.sqrt(-kappa)


def hyperboloid_distance(x, y, kappa):
    z = kappa * (dot(x[1:], y[1:]) - x[0] * y[0])
    return mp.acosh(max(z, mp.mpf(1))) / mp.sqrt(-kappa)


def klein_distance(x, y, kappa):
    cosh = (1 + kappa * dot(x, y)) / mp.sqrt((1 + kappa * dot(x, x)) * (1 + kappa * dot(y, y)))
    return mp.acosh(max(cosh, mp.mpf(1))) / mp.sqrt(-kappa)


def sphere_distance(x, y, kappa):
    chord = mp.sqrt(dot(*[[a - b for a, b in zip(x, y, strict=True)]] * 2))
    return 2 * mp.asin(min(chord * mp.sqrt(kappa) / 2, mp.mpf(1))) / mp.sqrt(kappa)


def by_half_space(x, kappa):
    w = [mp.sqrt(-kappa) * c for c in x]
    scale = dot(w[:-1], w[:-1]) + (1 - w[-1]) ** 2
    return [*(2 * c / scale for c in w[:-1]), (1 - dot(w, w)) / scale]


def by_sphere(x, kappa):
    z, root = kappa * dot(x, x), mp.sqrt(kappa)
    return [(1 - z) / (1 + z) / root, *(2 * c / (1 + z) for c in x)]


def by_hyperboloid(x, kappa):
    z, root = -kappa * dot(x, x), mp.sqrt(-kappa)
    return [(1 + z) / (1 - z) / root, *(2 * c / (1 - z) for c in x)]


def by_klein(x, kappa):
    return [2 * c / (1 - kappa * dot(x, x)) for c in x]


CHARTS = {
    "half_space": (by_half_space, half_space_distance, HYPERBOLIC),
    "hyperboloid": (by_hyperboloid, hyperboloid_distance, HYPERBOLIC),
    "klein": (by_klein, klein_distance, HYPERBOLIC),
    "sphere": (by_sphere, sphere_distance, SPHERICAL),
}
CASES = [(name, kappa) for name, chart in CHARTS.items() for kappa in chart[2]]


def condition(x, kappa):
    """How much a rounding of a point's coordinates moves it, in units of its own scale, `[n]`."""
    z = kappa * x.square().sum(-1)
    return (1 + z.abs()) / (1 + z).abs() if kappa < 0 else torch.ones_like(z)


@pytest.mark.parametrize(("name", "kappa"), CASES)
def test_coordinates_are_those_of_the_formula_in_sixty_digits(name, kappa):
    formula, _, _ = CHARTS[name]
    x = points(kappa)
    found = getattr(charts, f"to_{name}")(x, kappa)
    for row, mapped, rounding in zip(x, found, condition(x, kappa).tolist(), strict=True):
        expected = formula(exactly(row), kappa)
        error = max(abs(mp.mpf(a) - b) for a, b in zip(mapped.tolist(), expected, strict=True))
        scale = max(*(abs(b) for b in expected), 1)
        assert error <= 1e-14 * rounding * scale, (row, mapped)


@pytest.mark.parametrize(("name", "kappa"), CASES)
def test_back_and_forth(name, kappa):
    """The inverse gives the point again, and takes coordinates that no chart has made."""
    x = points(kappa)
    forth, back = (getattr(charts, f"{way}_{name}") for way in ("to", "from"))
    if name == "klein":  # coordinates near its rim have too few digits
        x = x[condition(x, kappa) < 1e4]
    again = back(forth(x, kappa), kappa)
    tolerance = 1e-13 * condition(x, kappa).clamp(max=1e6) * x.norm(dim=-1).clamp(min=1)
    assert ((again - x).norm(dim=-1) <= tolerance).all()
    formula, _, _ = CHARTS[name]
    exact = [[float(c) for c in formula(exactly(row), kappa)] for row in x]
    again = back(torch.tensor(exact, dtype=torch.float64), kappa)
    assert ((again - x).norm(dim=-1) <= tolerance).all()


@pytest.mark.parametrize(("name", "kappa"), CASES)
def test_distances_are_kept(name, kappa):
    """Of neighbouring points of the list, in the target's own formula."""
    _, distance, _ = CHARTS[name]
    x = points(kappa)
    found = getattr(charts, f"to_{name}")(x, kappa)
    worst = condition(x, kappa).tolist()
    for i, j in [(i, (i + 4) % len(x)) for i in range(len(x))]:
        expected = stereographic_distance(exactly(x[i]), exactly(x[j]), kappa)
        mapped = distance(exactly(found[i]), exactly(found[j]), kappa)
        rounding = max(worst[i], worst[j])
        if name in ("klein", "hyperboloid"):  # their formulas square it
            rounding = rounding**2
        assert abs(mapped - expected) <= max(1e-13 * rounding, 1e-7) * max(expected, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_heights_of_the_half_space_along_its_axis(dtype):
    """(0, t) goes to height (1 + t) / (1 - t): 19 for t = 0.9."""
    t = torch.tensor([-0.99, -0.5, 0.0, 0.5, 0.6, 0.9, 0.99, 0.999], dtype=dtype)
    found = charts.to_half_space(torch.stack([0 * t, t], -1), -1.0)
    wide = t.double()
    torch.testing.assert_close(found[:, 1].double(), (1 + wide) / (1 - wide), rtol=1e-6, atol=0)

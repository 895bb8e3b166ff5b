"""The pseudo-hyperboloid: its two limits, what its maps keep, and its distance as printed."""

import math

import pytest
import torch
from mpmath import mp, mpf
from torch.func import jacrev

from curvlab.manifolds import PseudoHyperboloid, lorentz

DIM = 6
KAPPAS = (-0.3, -1.0, -2.5)

pytestmark = pytest.mark.usefixtures("float64")


def tangents(points=12, scale=0.8, seed=0):
    return scale * torch.randn(points, DIM - 1, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
@pytest.mark.parametrize("kappa", KAPPAS)
def test_points_solve_the_equation_and_maps_are_inverse(time_dims, kappa):
    space, v = PseudoHyperboloid(time_dims, kappa), tangents(scale=0.3)  # less than half a turn
    x = space.expmap0(v)
    torch.testing.assert_close(space.inner(x, x), torch.full((len(x),), 1 / kappa))
    torch.testing.assert_close(space.logmap0(x), v)
    origin = space.expmap0(0 * v)
    assert origin[:, 0].tolist() == pytest.approx([1 / math.sqrt(-kappa)] * len(v))
    assert not origin[:, 1:].any()


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
def test_maps_have_derivatives_at_the_origin(time_dims):
    """Where the logarithm divides the angle, 0, by the length that it is read from, 0."""
    space, zero = PseudoHyperboloid(time_dims, -0.7), torch.zeros(DIM - 1)
    there = jacrev(space.expmap0)(zero)
    assert there.isfinite().all()
    assert torch.linalg.matrix_rank(there) == DIM - 1
    near = jacrev(lambda v: space.logmap0(space.expmap0(v)))
    torch.testing.assert_close(near(zero + 1e-7), torch.eye(DIM - 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_one_axis_of_time_distances_are_those_of_the_lorentz_model(kappa):
    space = PseudoHyperboloid(1, kappa)
    x, y = (space.expmap0(tangents(seed=seed)) for seed in (0, 1))
    torch.testing.assert_close(space.sqdist(x, y), lorentz.sqdist(x, y, kappa))
    torch.testing.assert_close(space.pairwise_sqdist(x, y), lorentz.sqdist(x[:, None], y, kappa))


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_times_alone_distances_are_those_of_a_sphere(kappa):
    space = PseudoHyperboloid(DIM, kappa)
    x, y = (space.expmap0(tangents(seed=seed)) for seed in (0, 1))
    radius = 1 / math.sqrt(-kappa)
    angle = torch.acos((x * y).sum(-1) / radius**2)
    torch.testing.assert_close(space.sqdist(x, y), (radius * angle).square())
    # And from the origin they are lengths of tangent vectors, up to half a turn.
    v = tangents(scale=0.3)
    reached = space.sqdist(space.expmap0(v), space.expmap0(0 * v))
    torch.testing.assert_close(reached, v.square().sum(-1))


def printed_dist(a, radius):
    """The distance of FPS-T's baselines from `a = -kappa <x, y>`, case by case."""
    if a < -1:
        return radius * math.acosh(-a)
    if a < 1:
        return radius * math.acos(-a)
    return radius * (math.pi + math.acosh(a))


@pytest.mark.parametrize("time_dims", [2, 3, 5])
@pytest.mark.parametrize("kappa", KAPPAS)
def test_distances_are_the_printed_cases(time_dims, kappa):
    space = PseudoHyperboloid(time_dims, kappa)
    x, y = (space.expmap0(tangents(200, 1.5, seed)) for seed in (0, 1))
    a = -kappa * space.inner(x, y)
    assert (a < -1).any()
    assert (a.abs() < 1).any()
    assert (a > 1).any()
    printed = [printed_dist(float(value), 1 / math.sqrt(-kappa)) for value in a]
    torch.testing.assert_close(space.dist(x, y), torch.tensor(printed))
    torch.testing.assert_close(space.pairwise_sqdist(x, y).diagonal(), space.sqdist(x, y))


def test_points_joined_by_light_are_at_distance_zero():
    """A step in time as long as one in space, along the tangent plane: a straight line, null."""
    x = torch.tensor([1.0, 0, 0, 0])
    y = x + torch.tensor([0, 2.0, 2.0, 0])
    space = PseudoHyperboloid(2)
    assert space.inner(y, y).item() == pytest.approx(-1)
    assert space.sqdist(x, y).item() == 0
    y.requires_grad_()
    (slope,) = torch.autograd.grad(space.sqdist(x, y), y)
    assert not slope.any()


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
def test_moving_keeps_to_the_space_and_moves_the_origin_to_the_vectors_point(time_dims):
    space, v = PseudoHyperboloid(time_dims, -0.6), tangents(1, 0.4, seed=3)[0]
    x = space.expmap0(tangents())
    moved = space.expmap(x, v)
    torch.testing.assert_close(space.inner(moved, moved), torch.full((len(x),), -1 / 0.6))
    torch.testing.assert_close(space.expmap(x, 0 * v), x)
    torch.testing.assert_close(space.expmap(space.expmap0(0 * v), v), space.expmap0(v))
    if time_dims == DIM:  # a sphere, on which transport keeps lengths
        torch.testing.assert_close(space.sqdist(x, moved), v.square().sum().expand(len(x)))


def in_digits(x):
    return [mpf(value) for value in x.tolist()]


def exact_dist(x, y, time_dims, kappa):
    """The distance in 50 digits, case by case, of points in digits."""
    signs = [-1] * time_dims + [1] * (len(x) - time_dims)
    a = -kappa * sum(sign * p * q for sign, p, q in zip(signs, x, y, strict=True))
    radius = 1 / mp.sqrt(-kappa)
    if a < -1:
        return radius * mp.acosh(-a)
    return radius * (mp.acos(-a) if a < 1 else mp.pi + mp.acosh(a))


def exact_share(share, x, y, time_dims, kappa):
    """A point of the geodesic of a sphere times a flat space: an arc, and a straight line."""
    root = mp.sqrt(-kappa)
    ends = []
    for point in (x, y):
        length = mp.sqrt(sum(value**2 for value in point[:time_dims]))
        ends.append([value / length for value in point[:time_dims]])
    cosine = sum(p * q for p, q in zip(*ends, strict=True))
    angle = mp.acos(min(cosine, mpf(1)))
    weights = (1 - share, share)
    if angle > mpf(10) ** -20:
        weights = [mp.sin(w * angle) / mp.sin(angle) for w in weights]
    unit = [weights[0] * p + weights[1] * q for p, q in zip(*ends, strict=True)]
    space = [(1 - share) * p + share * q for p, q in zip(x[time_dims:], y[time_dims:], strict=True)]
    time = mp.sqrt(1 + sum((root * value) ** 2 for value in space)) / root
    return [time * value for value in unit] + space


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
@pytest.mark.parametrize("kappa", KAPPAS)
def test_maps_are_of_a_sphere_times_a_flat_space(time_dims, kappa):
    """In 50 digits; and they agree with each other."""
    space = PseudoHyperboloid(time_dims, kappa)
    x, y = (space.expmap0(tangents(scale=0.4, seed=seed)) for seed in (0, 1))
    for share in (0.0, 0.3, 0.5, 1.0):
        found = space.geodesic(share, x, y)
        torch.testing.assert_close(space.inner(found, found), torch.full((len(x),), 1 / kappa))
        with mp.workdps(50):
            rows = zip(x, y, strict=True)
            exact = [
                exact_share(mpf(share), in_digits(p), in_digits(q), time_dims, mpf(kappa))
                for p, q in rows
            ]
        torch.testing.assert_close(found, torch.tensor([[float(c) for c in row] for row in exact]))
    torch.testing.assert_close(space.expmap(x, space.logmap(x, y)), y)
    torch.testing.assert_close(space.add(x, y), space.expmap(x, space.logmap0(y)))
    v = tangents(scale=0.1, seed=2)
    torch.testing.assert_close(space.logmap(x, space.expmap(x, v)), v)


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
@pytest.mark.parametrize("kappa", KAPPAS)
def test_distances_are_of_the_pseudo_hyperboloid(time_dims, kappa):
    """Along the axes closed forms; between drawn points 50 digits."""
    space, v = PseudoHyperboloid(time_dims, kappa), tangents(scale=0.3)
    along, s = v.clone(), v.clone()
    along[:, time_dims - 1 :] = 0
    s[:, : time_dims - 1] = 0
    torch.testing.assert_close(space.dist0(space.expmap0(along)), along.norm(dim=1))
    reached = space.dist0(space.expmap0(s))
    torch.testing.assert_close(reached, s.norm(dim=1).asinh() / math.sqrt(-kappa))
    x, y = (space.expmap0(tangents(scale=1.0, seed=seed)) for seed in (0, 1))
    with mp.workdps(50):
        pairs = zip(x, y, strict=True)
        exact = [
            float(exact_dist(in_digits(p), in_digits(q), time_dims, mpf(kappa))) for p, q in pairs
        ]
    torch.testing.assert_close(space.dist(x, y), torch.tensor(exact))


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
def test_half_the_way_is_half_the_distance_on_a_sphere_alone(time_dims):
    """The share of the distance along a straight line of space, in closed form, and of others."""
    space = PseudoHyperboloid(time_dims, -0.7)
    x, y = (space.expmap0(tangents(200, 0.8, seed)) for seed in (0, 1))
    ratio = space.dist(x, space.geodesic(0.5, x, y)) / space.dist(x, y)
    if time_dims == DIM:
        torch.testing.assert_close(ratio, torch.full_like(ratio, 0.5))
        return
    low, high = ratio.quantile(torch.tensor([0.05, 0.95])).tolist()
    assert low < 0.47
    assert high > 0.53
    origin, v = space.expmap0(torch.zeros(DIM - 1)), torch.zeros(DIM - 1)
    v[-1] = 2.0
    end = space.expmap0(v)
    middle = space.geodesic(0.5, origin, end)
    share = math.asinh(1) / math.asinh(2)  # 0.61
    assert (space.dist0(middle) / space.dist0(end)).item() == pytest.approx(share)
    assert space.dist0(end).item() == pytest.approx(math.asinh(2) / math.sqrt(0.7))
    mean = space.weighted_mean(torch.stack([x, y], 1), lambda w: w.sum(-2, keepdim=True))[:, 0]
    apart = (space.dist(x, mean) - space.dist(y, mean)).abs()
    assert apart.median() > 0.01


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
def test_all_functions_compile_as_one_graph():
    space = PseudoHyperboloid(3, -0.6, learnable=True)
    v, w = tangents().requires_grad_(), tangents(1)[0]

    def composed(v):
        x = space.expmap0(v)
        moved = space.expmap(x, w)
        apart, pairs = space.sqdist(x, moved), space.pairwise_sqdist(x, moved)
        return apart.sum() + space.logmap0(moved).sum() + pairs.sum()

    expected = composed(v)
    found = torch.compile(composed, fullgraph=True, backend="eager")(v)
    torch.testing.assert_close(found, expected)
    leaves = v, space.curvature.raw
    slopes = (torch.autograd.grad(value, leaves) for value in (found, expected))
    torch.testing.assert_close(*slopes)

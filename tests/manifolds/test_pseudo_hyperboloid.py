"""The pseudo-hyperboloid: its two limits, what its maps keep, and its distance as printed."""

import math

import pytest
import torch
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

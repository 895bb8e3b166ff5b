"""The pseudo-hyperboloid: its two limits, what its maps keep, and its distance as printed."""

import math

import pytest
import torch
from torch.func import jacrev

from curvlab.manifolds import PseudoHyperboloid, lorentz
from curvlab.manifolds import pseudo_hyperboloid as pseudo

DIM = 6
KAPPAS = (-0.3, -1.0, -2.5)

pytestmark = pytest.mark.usefixtures("float64")


def kappa_of(value):
    return torch.tensor(value, dtype=torch.float64)


def tangents(points=12, scale=0.8, seed=0):
    return scale * torch.randn(points, DIM - 1, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
@pytest.mark.parametrize("kappa", KAPPAS)
def test_points_solve_the_equation_and_maps_are_inverse(time_dims, kappa):
    k, v = kappa_of(kappa), tangents(scale=0.3)  # less than half a turn
    x = pseudo.expmap0(v, k, time_dims)
    torch.testing.assert_close(pseudo.inner(x, x, time_dims), (1 / k).expand(len(x)))
    torch.testing.assert_close(pseudo.logmap0(x, k, time_dims), v)
    origin = pseudo.expmap0(0 * v, k, time_dims)
    assert origin[:, 0].tolist() == pytest.approx([1 / math.sqrt(-kappa)] * len(v))
    assert not origin[:, 1:].any()


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
def test_maps_have_derivatives_at_the_origin(time_dims):
    """Where the logarithm divides the angle, 0, by the length that it is read from, 0."""
    k, zero = kappa_of(-0.7), torch.zeros(DIM - 1)
    there = jacrev(lambda v: pseudo.expmap0(v, k, time_dims))(zero)
    assert there.isfinite().all()
    assert torch.linalg.matrix_rank(there) == DIM - 1
    near = jacrev(lambda v: pseudo.logmap0(pseudo.expmap0(v, k, time_dims), k, time_dims))
    torch.testing.assert_close(near(zero + 1e-7), torch.eye(DIM - 1), atol=1e-6, rtol=0)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_one_axis_of_time_distances_are_those_of_the_lorentz_model(kappa):
    k = kappa_of(kappa)
    x, y = (pseudo.expmap0(tangents(seed=seed), k, 1) for seed in (0, 1))
    torch.testing.assert_close(pseudo.sqdist(x, y, k, 1), lorentz.sqdist(x, y, k))
    pairs = pseudo.pairwise_sqdist(x, y, k, 1)
    torch.testing.assert_close(pairs, lorentz.sqdist(x[:, None], y, k))


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_times_alone_distances_are_those_of_a_sphere(kappa):
    k = kappa_of(kappa)
    x, y = (pseudo.expmap0(tangents(seed=seed), k, DIM) for seed in (0, 1))
    radius = 1 / math.sqrt(-kappa)
    angle = torch.acos((x * y).sum(-1) / radius**2)
    torch.testing.assert_close(pseudo.sqdist(x, y, k, DIM), (radius * angle).square())
    # And from the origin they are lengths of tangent vectors, up to half a turn.
    v = tangents(scale=0.3)
    reached = pseudo.sqdist(pseudo.expmap0(v, k, DIM), pseudo.expmap0(0 * v, k, DIM), k, DIM)
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
    k = kappa_of(kappa)
    x, y = (pseudo.expmap0(tangents(200, 1.5, seed), k, time_dims) for seed in (0, 1))
    a = -kappa * pseudo.inner(x, y, time_dims)
    assert (a < -1).any()
    assert (a.abs() < 1).any()
    assert (a > 1).any()
    printed = [printed_dist(float(value), 1 / math.sqrt(-kappa)) for value in a]
    space = PseudoHyperboloid(time_dims, kappa)
    torch.testing.assert_close(space.dist(x, y), torch.tensor(printed))
    torch.testing.assert_close(space.pairwise_sqdist(x, y).diagonal(), space.sqdist(x, y))


def test_points_joined_by_light_are_at_distance_zero():
    """A step in time as long as one in space, along the tangent plane: a straight line, null."""
    x = torch.tensor([1.0, 0, 0, 0])
    y = x + torch.tensor([0, 2.0, 2.0, 0])
    k = kappa_of(-1.0)
    assert pseudo.inner(y, y, 2).item() == pytest.approx(-1)
    assert pseudo.sqdist(x, y, k, 2).item() == 0
    y.requires_grad_()
    (slope,) = torch.autograd.grad(pseudo.sqdist(x, y, k, 2), y)
    assert not slope.any()


@pytest.mark.parametrize("time_dims", range(1, DIM + 1))
def test_moving_keeps_to_the_space_and_moves_the_origin_to_the_vectors_point(time_dims):
    k, x = kappa_of(-0.6), pseudo.expmap0(tangents(), kappa_of(-0.6), time_dims)
    v = tangents(1, 0.4, seed=3)[0]
    moved = pseudo.expmap(x, v, k, time_dims)
    torch.testing.assert_close(pseudo.inner(moved, moved, time_dims), (1 / k).expand(len(x)))
    torch.testing.assert_close(pseudo.expmap(x, 0 * v, k, time_dims), x)
    origin = pseudo.expmap0(0 * v, k, time_dims)
    torch.testing.assert_close(
        pseudo.expmap(origin, v, k, time_dims), pseudo.expmap0(v, k, time_dims)
    )
    if time_dims == DIM:  # a sphere, on which transport keeps lengths
        torch.testing.assert_close(pseudo.sqdist(x, moved, k, DIM), v.square().sum().expand(len(x)))


@pytest.mark.slow
def test_all_functions_compile_as_one_graph():
    k = kappa_of(-0.6).requires_grad_()
    v, w = tangents().requires_grad_(), tangents(1)[0]

    def composed(v, k):
        x = pseudo.expmap0(v, k, 3)
        moved = pseudo.expmap(x, w, k, 3)
        back = pseudo.logmap0(moved, k, 3)
        return (pseudo.sqdist(x, moved, k, 3) + back.sum(-1)).sum() + pseudo.pairwise_sqdist(
            x, moved, k, 3
        ).sum()

    torch.compiler.reset()
    inputs = v, k
    expected = composed(*inputs)
    found = torch.compile(composed, fullgraph=True, backend="eager")(*inputs)
    torch.testing.assert_close(found, expected)
    slopes = (torch.autograd.grad(value, inputs) for value in (found, expected))
    for own, other in zip(*slopes, strict=True):
        torch.testing.assert_close(own, other)

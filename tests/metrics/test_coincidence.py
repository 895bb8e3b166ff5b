"""Nodes that coincide, whatever their order and rounding."""

import pytest
import torch

from curvlab.manifolds import Euclidean, Lorentz, PoincareBall, Sphere
from curvlab.metrics.coincidence import coincident_nodes


def drawn(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def groups_of(points):
    """The sets of nodes that coincide."""
    same = coincident_nodes(points)
    assert torch.equal(same[same], same)
    return {frozenset((same == node).nonzero().flatten().tolist()) for node in same.tolist()}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 2, 16])
def test_copies_of_points_coincide_and_no_others(dtype, dim):
    points = drawn(40, dim, dtype=dtype).unique(dim=0)
    copies = torch.arange(3 * len(points)).view(3, -1)
    order = torch.randperm(copies.numel(), generator=torch.Generator().manual_seed(1))
    expected = {frozenset(group) for group in order.argsort()[copies].T.tolist()}
    assert groups_of(points.repeat(3, 1)[order]) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_roundings_of_a_point_are_one_point(dtype, scale):
    """Of each of 60 points ten versions, ten roundings of their length off, are told from 60."""
    points = drawn(60, 8, dtype=torch.float64)
    noise = drawn(10, 60, 8, dtype=torch.float64, seed=1).clamp(-3, 3)
    noise *= points.norm(dim=1, keepdim=True) * torch.finfo(dtype).eps * 3
    found = groups_of((scale * (points + noise)).to(dtype).flatten(0, 1))
    assert found == {frozenset(range(i, 600, 60)) for i in range(60)}


@pytest.mark.parametrize("shift", [0, 100])
def test_points_as_dense_as_rounding_allows_do_not_become_one(shift):
    """Many points of a small cloud, also far from the origin: no chain joins them."""
    points = shift + drawn(3000, 2)
    sizes = coincident_nodes(points).unique(return_counts=True)[1]
    assert sizes.max() <= 3
    line = (shift + torch.linspace(0, 1, 20_000)).unsqueeze(1)
    same = coincident_nodes(line)
    assert (line - line[same]).abs().max() <= 1e-4 * line.max()


@pytest.mark.parametrize("space", [Euclidean(), PoincareBall(), Sphere(), Lorentz()])
def test_near_points_far_out_are_not_merged(space):
    """Points at distance 0.1 of each other, up to distance 5 from the origin."""
    angle = torch.linspace(0, 0.9, 10).unsqueeze(1)
    for radius in (0.5, 1.5, 5.0 if not isinstance(space, Sphere) else 2.5):
        step = 0.1 / max(radius, torch.tensor(radius).sinh().item())
        v = radius * torch.cat([(step * angle).cos(), (step * angle).sin()], 1)
        assert len(groups_of(space.expmap0(v))) == 10


def test_points_that_are_not_finite_coincide_with_none():
    """So that a metric sees them."""
    points = drawn(9, 2)
    points[3] = torch.nan
    points[5:7, 0] = torch.inf
    assert groups_of(points) == {frozenset([i]) for i in range(9)}


def test_origins_coincide():
    points = torch.cat([torch.zeros(4, 3), drawn(3, 3), 1e-9 * drawn(2, 3)])
    assert groups_of(points) == {
        frozenset([0, 1, 2, 3, 7, 8]),
        *(frozenset([i]) for i in (4, 5, 6)),
    }

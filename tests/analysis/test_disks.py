"""Hyperbolic points are drawn where they are, inside the disk."""

import pytest
import torch

from curvlab.analysis.embedding_figures import disks_of, geodesics
from curvlab.manifolds import Euclidean, Lorentz, Sphere, Stereographic
from curvlab.manifolds import stereographic as k_space


def tangents(nodes=30, dim=2, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(nodes, dim, generator=generator).double()


@pytest.mark.parametrize("kappa", [-0.3, -1.0, -4.0])
def test_two_dimensions_keep_their_distances(kappa):
    space = Stereographic(1, kappa, learnable=False).double()
    x = space.expmap0_projected(tangents())
    (disk,) = disks_of(x, space)
    assert disk.kappa == pytest.approx(kappa)
    drawn = k_space.pairwise_dist(disk.points, disk.points, -1.0)
    torch.testing.assert_close(drawn, (-kappa) ** 0.5 * space.pairwise_dist(x, x))


def test_points_of_the_lorentz_model_are_drawn_as_their_images():
    space = Lorentz(-2.0, learnable=False).double()
    x = space.expmap0(tangents())
    (disk,) = disks_of(*space.in_components(x))
    drawn = k_space.pairwise_dist(disk.points, disk.points, -1.0)
    torch.testing.assert_close(drawn, 2**0.5 * space.pairwise_dist(x, x), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_points_of_more_dimensions_are_inside_and_no_farther_than_they_were(scale):
    space = Stereographic(1, -1.5, learnable=False).double()
    x = space.expmap0_projected(tangents(dim=6, scale=scale))
    (disk,) = disks_of(x, space)
    assert (disk.points.norm(dim=1) < 1).all()
    middle = space.midpoint(x, torch.ones(len(x)).double())
    spread = space.dist(middle.expand_as(x), x).max() * 1.5**0.5
    assert k_space.dist0(disk.points, -1.0).max() <= 2 * spread


def test_each_hyperbolic_component_has_a_disk_and_no_other_has():
    space = Stereographic(3, [-1.0, 0.5, -0.2], learnable=False).double()
    x = space.expmap0_projected(tangents(dim=6, scale=0.3))
    assert [round(disk.kappa, 3) for disk in disks_of(x, space)] == [-1.0, -0.2]
    assert disks_of(x, Euclidean()) == []
    assert disks_of(x, Sphere().double()) == []


def test_geodesics_are_as_long_as_the_distance():
    x, y = (k_space.expmap0(tangents()[i::2], -1.0) for i in (0, 1))
    steps = geodesics(x, y, 9)
    lengths = k_space.dist(steps[:, 1:], steps[:, :-1], -1.0).sum(1)
    torch.testing.assert_close(lengths, k_space.dist(x, y, -1.0))
    torch.testing.assert_close(steps[:, -1], y)

"""Embeddings are stored without loss and seen from their midpoint."""

import numpy as np
import pytest
import torch

from curvlab.analysis.embeddings import (
    Embedding,
    load_embedding,
    principal_components,
    save_embedding,
    tangent_coordinates,
)
from curvlab.errors import UsageError
from curvlab.manifolds import Curvature, Euclidean, Lorentz, PseudoHyperboloid, Stereographic

EDGES = torch.tensor([[0, 1], [1, 0]])


def product_space(*kappa):
    space = Stereographic(len(kappa))
    space.curvature = Curvature(kappa, len(kappa), learnable=False)
    return space.double()


def points_on(space, nodes=30, dim=6, scale=0.4):
    tangent = torch.randn(nodes, dim, generator=torch.Generator().manual_seed(0)).double()
    return space.expmap0(scale * tangent)


@pytest.mark.parametrize("kappa", [(-1.0,), (-2.0, 0.7), (0.0, -0.5, 1.0)])
def test_norms_are_the_distances_from_the_midpoint(kappa):
    space = product_space(*kappa)
    points = points_on(space)
    coordinates = tangent_coordinates(points, space)
    middle = space.weighted_mean(points, lambda v: v.sum(-2, True))[0]
    torch.testing.assert_close(coordinates.norm(dim=1), space.dist(middle, points))


def test_flat_space_is_only_centred_and_scaled():
    points = points_on(Euclidean())
    coordinates = tangent_coordinates(points, Euclidean(2, conformal_factor=2.0))
    torch.testing.assert_close(coordinates, 2 * (points - points.mean(dim=0)))


def test_components_are_those_of_the_covariance():
    axes = torch.linalg.qr(torch.randn(5, 5).double()).Q
    spread = torch.tensor([5.0, 3.0, 1.0, 0.5, 0.1]).double()
    data = torch.randn(4000, 5).double() * spread @ axes.T + 7
    coordinates, explained = principal_components(data)
    variances = torch.linalg.eigvalsh(torch.cov(data.T)).flip(0)
    torch.testing.assert_close(coordinates.var(dim=0), variances[:2])
    assert explained == pytest.approx((variances / variances.sum())[:2].tolist())
    correlation = torch.corrcoef(coordinates.T)[0, 1]
    assert abs(correlation) < 1e-10


@pytest.mark.parametrize(
    "space", [product_space(-0.5, -3.9), product_space(1.0), Euclidean(2, 1.0), Euclidean(4, 2.0)]
)
def test_stored_and_loaded_are_the_same_points_at_the_same_distances(space, tmp_path):
    points = points_on(space, dim=8).float()
    save_embedding(tmp_path / "embeddings.npz", Embedding(points, space, EDGES))
    loaded = load_embedding(tmp_path / "embeddings.npz")
    assert torch.equal(loaded.points, points)
    assert torch.equal(loaded.edge_index, EDGES)
    assert type(loaded.space) is type(space)
    torch.testing.assert_close(
        loaded.space.pairwise_dist(points, points).double(),
        space.pairwise_dist(points, points).double(),
    )


def test_missing_and_damaged_files_are_reported(tmp_path):
    path = tmp_path / "embeddings.npz"
    with pytest.raises(UsageError, match="missing"):
        load_embedding(path)
    path.write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(UsageError, match="no embedding"):
        load_embedding(path)
    np.savez(path, something=np.zeros(3))
    with pytest.raises(UsageError, match="no embedding"):
        load_embedding(path)


@torch.no_grad()
def test_points_of_the_lorentz_model_are_stored_at_their_distances(tmp_path):
    space = Lorentz(-0.5)
    points = space.expmap0(3 * torch.randn(20, 4, generator=torch.Generator().manual_seed(0)))
    image, ball = space.picture(points)
    save_embedding(tmp_path / "points.npz", Embedding(image, ball, EDGES))
    stored = load_embedding(tmp_path / "points.npz")
    distances = stored.space.double().pairwise_dist(stored.points, stored.points)
    expected = space.pairwise_dist(points.double(), points.double())
    torch.testing.assert_close(distances, expected, atol=1e-6, rtol=1e-6)
    flat = Euclidean()
    assert flat.picture(points) == (points, flat)
    pseudo = PseudoHyperboloid(2)
    tangents, around = pseudo.picture(points)
    assert isinstance(around, Euclidean)
    torch.testing.assert_close(tangents, pseudo.logmap0(points))

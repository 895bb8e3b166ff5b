"""Embeddings are stored without loss and seen from their midpoint; classes as by torchmetrics."""

import numpy as np
import pandas as pd
import pytest
import torch
from torchmetrics.functional.classification import multiclass_confusion_matrix, multiclass_f1_score

from curvlab.analysis.classes import save_classes
from curvlab.analysis.embeddings import (
    Embedding,
    load_embedding,
    picture,
    principal_components,
    save_embedding,
    tangent_coordinates,
)
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Lorentz, PseudoHyperboloid, Stereographic

EDGES = torch.tensor([[0, 1], [1, 0]])


def product_space(*kappa):
    return Stereographic(len(kappa), kappa).double()


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
    tangents, around = picture(pseudo, points)
    assert isinstance(around, Euclidean)
    torch.testing.assert_close(tangents, pseudo.logmap0(points))


def test_files_agree_with_torchmetrics(tmp_path):
    logits = 2 * torch.randn(400, 4)
    labels = torch.where(torch.rand(400) < 0.6, logits.argmax(1), torch.randint(4, (400,)))
    probabilities = logits.softmax(1)
    save_classes(tmp_path, probabilities.numpy(), labels.numpy(), ["a", "b", "c", "d"])
    table = pd.read_csv(tmp_path / "classes.csv")
    assert table["class"].tolist() == ["a", "b", "c", "d"]
    expected = multiclass_f1_score(probabilities, labels, 4, average="none")
    np.testing.assert_allclose(table["f1"], expected, atol=1e-5)
    matrix = pd.read_csv(tmp_path / "confusion.csv", index_col="class")
    of_library = multiclass_confusion_matrix(probabilities, labels, 4).numpy()
    np.testing.assert_array_equal(matrix.to_numpy(), of_library)
    assert table["nodes"].tolist() == of_library.sum(1).tolist()


def test_labels_of_which_a_node_has_several_have_no_confusion_matrix(tmp_path):
    probabilities = torch.rand(200, 3)
    labels = (torch.rand(200, 3) < probabilities).long()
    save_classes(tmp_path, probabilities.numpy(), labels.numpy())
    assert not (tmp_path / "confusion.csv").exists()
    table = pd.read_csv(tmp_path / "classes.csv")
    both = (labels.bool() & (probabilities > 0.5)).sum(0)
    np.testing.assert_allclose(table["recall"], both / labels.sum(0), atol=1e-5)

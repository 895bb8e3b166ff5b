"""Learned filters and branches: files, clusters, tables, the triangle."""

import math

import numpy as np
import pytest
import torch

from curvlab.analysis.filters import EIGENVALUES, filter_clusters
from curvlab.analysis.model_figures import ternary_figure
from curvlab.analysis.plots import plot_routing
from curvlab.analysis.routing import FILE, Routing, load_routing, routing_table, save_routing
from curvlab.analysis.style import save_figure
from curvlab.errors import UsageError


def test_planted_filters_are_found():
    """Thirty nodes pass low frequencies, `(2 - l) / 2`, ten high ones, `l / 2`."""
    planted = torch.tensor([[0.5, -0.5, 0.0]] * 30 + [[0.5, 0.5, 0.0]] * 10)
    first, second = filter_clusters((planted + 1e-3 * torch.randn(40, 3)).numpy(), "cheb", 2)
    assert (first.share, second.share) == (0.75, 0.25)
    np.testing.assert_allclose(first.mean, 1 - EIGENVALUES / 2, atol=2e-3)
    np.testing.assert_allclose(second.mean, EIGENVALUES / 2, atol=2e-3)
    assert (first.low <= first.mean).all()
    assert (first.mean <= first.high).all()


def test_rounding_makes_no_clusters():
    """float32 sums of the same numbers in another order are another filter in the last digit."""
    rounded = torch.tensor([3.0, -1.0]) * (1 + 1e-6 * torch.randn(20, 1))
    assert [cluster.share for cluster in filter_clusters(rounded.numpy(), "mono", 5)] == [1]


WEIGHTS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]])
ROUTING = Routing(
    WEIGHTS, np.array([1, 1, 1, 0]), ["euclidean", "hyperbolic", "spherical"], ["likes", "knows"]
)


def test_the_table_has_a_row_of_all_and_one_a_relation():
    table = routing_table(ROUTING)
    assert table["relation"].tolist() == ["all", "knows", "likes"]
    assert table["queries"].tolist() == [4, 3, 1]
    np.testing.assert_allclose(table["hyperbolic"], [1.1 / 4, 1.1 / 3, 0], atol=1e-12)
    np.testing.assert_allclose(table["euclidean_first"].astype(float), [0.5, 2 / 3, 0])
    np.testing.assert_allclose(table["spherical_first"].astype(float), [0.25, 0, 1])
    assert table["entropy"].iloc[2] == 0
    by_hand = -sum(w * math.log(w) for w in WEIGHTS[:3].ravel()) / 3
    assert table["entropy"].iloc[1] == pytest.approx(by_hand)


def test_what_is_saved_is_loaded(tmp_path):
    save_routing(tmp_path / FILE, {"test": ROUTING})
    found = load_routing(tmp_path / FILE, "test")
    np.testing.assert_allclose(found.weights, WEIGHTS, atol=1e-7)
    assert (found.branches, found.relations) == (ROUTING.branches, ROUTING.relations)
    assert found.relation.tolist() == [1, 1, 1, 0]
    with pytest.raises(UsageError, match="no routing of the train part: run the model again"):
        load_routing(tmp_path / FILE, "train")
    with pytest.raises(UsageError, match="only models with a router"):
        load_routing(tmp_path / "nowhere.npz", "test")
    path = plot_routing(tmp_path, "a run")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_tokens_stand_at_the_mean_of_the_corners(tmp_path):
    """One token at each corner and one in the middle: four hexagons, at these places."""
    weights = np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])
    figure = ternary_figure(Routing(weights, np.zeros(4), list("abc"), []), "title")
    axis = figure.axes[0]
    hexagons = axis.collections[0]
    height = math.sqrt(3) / 2
    corners = np.array([[0.5, height], [0, 0], [1, 0], [0.5, height / 3]])
    found = hexagons.get_offsets()
    distances = np.linalg.norm(found[:, None] - corners[None], axis=-1)
    assert sorted(distances.argmin(1)) == [0, 1, 2, 3]
    assert distances.min(1).max() < 0.03
    (cross,) = (line for line in axis.lines if line.get_marker() == "x")
    np.testing.assert_allclose(np.ravel(cross.get_data()), [0.5, height / 3])
    save_figure(figure, tmp_path / "t.png")
    with pytest.raises(UsageError, match="a triangle has three corners, the model 2 branches"):
        ternary_figure(Routing(weights[:, :2], np.zeros(4), list("ab"), []), "title")

"""Filters and targets: the specification's numbers, the dense spectrum, generated grids."""

import numpy as np
import pytest
import torch

from curvlab.data.datasets.filter_images import FILTERS, apply_filter, generated_grid
from curvlab.data.transforms.graph import normalised_adjacency_matrix
from curvlab.errors import UsageError

TARGETS = {  # at pixels 5050 and 0, and the sum of squares on the scored pixels
    "mixed_low_pass": (0.264317, 0.574424, 442.3429),
    "mixed_high_pass": (-0.009416, 0.213811, 40.3650),
    "mixed_band_pass": (-0.009619, 0.015796, 14.2252),
    "mixed_rejection_pass": (0.264521, 0.772440, 478.7141),
    "low_high_pass": (0.265302, 0.189402, 235.5883),
    "band_rejection_pass": (-0.008193, 0.762614, 1089.3297),
}


@pytest.fixture
def images(source):
    """`images(mirror, key=value, ...)`: the images as their configuration describes them."""

    def make(mirror=None, filter="low_high_pass", **changes):
        changes = {f"source.{key}": value for key, value in changes.items()}
        return source("filter_images", mirror, **{"source.filter": filter, **changes})

    return make


@pytest.mark.nightly
@pytest.mark.parametrize("name", FILTERS)
def test_the_targets_of_the_paper(name, images, mirror):
    data = images(mirror, name).load()
    below, above, total = TARGETS[name]
    assert int((data.x < 0.5).sum()) == 5685
    assert int(data.scored.sum()) == 9216
    assert data.num_edges == 39600
    assert float(data.x[5050]) == pytest.approx(0.254902, abs=1e-6)
    assert float(data.target[5050]) == pytest.approx(below, abs=2e-6)
    assert float(data.target[0]) == pytest.approx(above, abs=2e-6)
    scored = data.target[data.scored].double()
    assert float(((scored - scored.mean()) ** 2).sum()) == pytest.approx(total, rel=1e-6)


def test_the_expansion_is_the_filter_of_the_spectrum():
    edges, image, _ = generated_grid(12, 0)
    values, vectors = np.linalg.eigh(normalised_adjacency_matrix(edges, 144).toarray())
    for pair in FILTERS.values():
        for filter_of in pair:
            expected = vectors @ (filter_of(1 - values) * (vectors.T @ image))
            found = apply_filter(edges, image, filter_of)
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_generated_grid_is_like_the_file(images):
    data = images(generated=True, side=9).load()
    degree = torch.bincount(data.edge_index[0])
    assert degree.bincount().tolist() == [0, 0, 4, 28, 49]
    assert int(data.scored.sum()) == 25
    assert (float(data.x.min()), float(data.x.max())) == (0, 1)
    other = images(generated=True, side=9, image=2).load()
    assert not torch.equal(data.x, other.x)


def test_an_image_that_is_not_there(images, mirror):
    with pytest.raises(UsageError, match="has images 0 to 49"):
        images(mirror, image=50).load()

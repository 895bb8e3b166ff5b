"""Studies over a grid become a map: cells by the options of their command lines."""

import json

import numpy as np
import pytest

from curvlab.analysis.figures import grid_figure
from curvlab.errors import UsageError
from curvlab.study.grid import cells_of

X, Y = "dataset.source.exponent", "dataset.source.beta"


@pytest.fixture
def studies(tmp_path):
    """`studies(words, hyperbolic=, spherical=, p=)`: a file of a study with these overrides."""

    def row(space, difference=None, p=None):
        found = {"space": space, "scores": [1], "mean": 60.0, "seconds": 4.0}
        return found | {"difference": difference, "pm": 0.5, "p_holm": p, "pairs": 3}

    def write(*words, hyperbolic=1.0, spherical=-1.0, p=0.2):
        rows = [row("flat"), row("hyperbolic", hyperbolic, p), row("spherical", spherical, p)]
        report = {"table": rows}
        folder = tmp_path / "study" / "-".join(words).replace("/", "_")
        folder.mkdir(parents=True)
        content = {"words": words, "models": ["kappa_gcn"], "reports": [report]}
        (folder / "study.json").write_text(json.dumps(content))
        return tmp_path / "study"

    return write


def grid(studies):
    for a, p in ((2.2, 0.01), (3.5, 0.2)):
        for b in (1.5, 10):
            folder = studies(f"{X}={a}", f"{Y}={b}", hyperbolic=a, spherical=b / 4, p=p)
    return folder


def test_a_cell_is_the_best_curved_space_less_flat(studies):
    studies("seed=1")
    folder = grid(studies)
    cells = cells_of(folder, X, Y)
    assert cells[["row", "column"]].values.tolist() == [
        [1.5, 2.2],
        [1.5, 3.5],
        [10, 2.2],
        [10, 3.5],
    ]
    assert cells["difference"].tolist() == [2.2, 3.5, 2.5, 3.5]
    assert cells["space"].tolist() == ["hyperbolic", "hyperbolic", "spherical", "hyperbolic"]
    assert cells["found"].tolist() == [True, False, True, False]
    assert set(cells["flat"]) == {60.0}
    assert set(cells["seconds"]) == {4.0}
    named = cells_of(folder, X, Y, space="spherical")
    assert named["difference"].tolist() == [1.5 / 4, 1.5 / 4, 2.5, 2.5]


def test_an_incomplete_grid_is_refused(studies):
    folder = grid(studies)
    with pytest.raises(UsageError, match=r"no study whose words set dataset\.source\.radius and"):
        cells_of(folder, X, "dataset.source.radius")
    with pytest.raises(UsageError, match="--space learned must be one of hyperbolic, spherical"):
        cells_of(folder, X, Y, space="learned")
    studies(f"{X}=2.2", f"{Y}=1.5", "seed=3")
    with pytest.raises(UsageError, match=r"has two studies of .*beta=1\.5.*exponent=2\.2"):
        cells_of(folder, X, Y)


def test_the_figure_has_a_square_a_cell_and_a_frame_where_a_difference_was_found(studies):
    folder = grid(studies)
    axis, bar = grid_figure(cells_of(folder, X, Y), X, Y, "title").axes
    np.testing.assert_array_equal(axis.images[0].get_array(), [[2.2, 3.5], [2.5, 3.5]])
    assert len(axis.patches) == 2
    assert axis.texts[0].get_text() == "+2.2 ± 0.5\nhyperbolic"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("exponent", "beta")
    low, high = bar.get_ylim()
    assert low == -high  # white is no difference
    next(folder.glob(f"{X}=2.2-{Y}=10*/study.json")).unlink()
    cells = cells_of(folder, X, Y).assign(pm=np.nan)
    axis = grid_figure(cells, X, Y, "title").axes[0]
    assert axis.texts[0].get_text() == "+2.2\nhyperbolic"
    holes = np.ma.getmaskarray(axis.images[0].get_array()).tolist()
    assert holes == [[False, False], [True, False]]

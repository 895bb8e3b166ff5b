"""Studies over a grid become a map: cells by what their words set, else a sentence."""

import json

import numpy as np
import pytest

from curvlab.analysis.grid_figure import grid_figure
from curvlab.cli.plot import main
from curvlab.errors import UsageError
from curvlab.study.grid import cells_of

X, Y, PANELS = (f"dataset.source.{name}" for name in ("exponent", "beta", "num_nodes"))


def other(space, difference, p):
    paired = {"pairs": 3, "mean": difference, "pm": 0.5}
    return {
        "outcome": {"space": space, "seconds": 4.0},
        "paired": paired,
        "corrected": p,
    }


@pytest.fixture
def studies(tmp_path):
    """`studies(words, hyperbolic=, spherical=, p=)`: a file of a study with these words."""

    def write(*words, hyperbolic=1.0, spherical=-1.0, p=0.2, models=("kappa_gcn",)):
        flat = {"space": "flat", "scores": [50.0, 60.0, 70.0], "seconds": 2.0}
        others = [other("hyperbolic", hyperbolic, p), other("spherical", spherical, p)]
        reports = [{"flat": flat | {"model": name}, "others": others} for name in models]
        folder = tmp_path / "study" / "-".join(words).replace("/", "_")
        folder.mkdir(parents=True)
        content = {"words": ["dataset=hyperbolic_graph", *words], "reports": reports}
        (folder / "study.json").write_text(json.dumps(content))
        return tmp_path / "study"

    return write


def grid(studies, values=(2.2, 3.5), betas=(1.5, 10), sizes=(100, 200)):
    for a in values:
        for b in betas:
            for n in sizes:
                words = (f"{X}={a}", f"{Y}={b}", f"{PANELS}={n}")
                folder = studies(*words, hyperbolic=a, spherical=b / 4, p=0.01 * n / 40)
    return folder


def test_a_cell_is_the_best_curved_space_less_flat(studies):
    cells = cells_of(grid(studies), X, Y, PANELS)
    assert cells[["panel", "row", "column"]].values.tolist() == [
        [n, b, a] for n in (100, 200) for b in (1.5, 10) for a in (2.2, 3.5)
    ]
    assert cells["difference"].tolist() == [2.2, 3.5, 2.5, 3.5] * 2
    assert cells["space"].tolist() == ["hyperbolic", "hyperbolic", "spherical", "hyperbolic"] * 2
    assert cells["found"].tolist() == [True] * 4 + [False] * 4
    assert set(cells["flat"]) == {60.0}
    assert cells["seconds"].iloc[0] == pytest.approx(10 / 3)


def test_a_space_can_be_named_and_other_keys_may_vary(studies):
    studies("seed=1")
    folder = grid(studies, sizes=(100,))
    cells = cells_of(folder, X, Y, space="spherical")
    assert cells["difference"].tolist() == [1.5 / 4, 1.5 / 4, 2.5, 2.5]
    assert cells["panel"].isna().all()


def test_what_is_no_grid_is_said(studies):
    folder = grid(studies)
    with pytest.raises(UsageError, match=r"has two studies of .*beta=1\.5.*exponent=2\.2"):
        cells_of(folder, X, Y)
    with pytest.raises(UsageError, match=r"no study whose words set dataset\.source\.radius and"):
        cells_of(folder, X, "dataset.source.radius")
    with pytest.raises(UsageError, match="--space learned must be one of hyperbolic, spherical"):
        cells_of(folder, X, Y, PANELS, space="learned")
    with pytest.raises(UsageError, match="--model fpst must be one of kappa_gcn"):
        cells_of(folder, X, Y, PANELS, model="fpst")
    studies(f"{X}=9", f"{Y}=9", models=("fpst", "hgcn"))
    with pytest.raises(UsageError, match="--model MODEL must be one of fpst, hgcn"):
        cells_of(folder / f"{X}=9-{Y}=9", X, Y)


def test_the_figure_has_a_square_a_cell_and_a_frame_where_a_difference_was_found(studies):
    cells = cells_of(grid(studies), X, Y, PANELS)
    left, right, bar = grid_figure(cells, X, Y, PANELS, "title").axes
    np.testing.assert_array_equal(left.images[0].get_array(), [[2.2, 3.5], [2.5, 3.5]])
    assert (len(left.patches), len(right.patches)) == (4, 0)
    assert left.texts[0].get_text() == "+2.2 ± 0.5\nhyperbolic"
    assert (left.get_xlabel(), left.get_ylabel()) == ("exponent", "beta")
    assert left.get_title() == "num nodes 100"
    low, high = bar.get_ylim()
    assert low == -high  # white is no difference


def test_equal_differences_are_drawn_without_an_interval(studies):
    cells = cells_of(grid(studies), X, Y, PANELS).assign(pm=np.nan)
    assert grid_figure(cells, X, Y, PANELS, "title").axes[0].texts[0].get_text() == (
        "+2.2\nhyperbolic"
    )


def test_a_cell_that_is_missing_is_left_white(studies):
    folder = grid(studies, sizes=(100,))
    next(folder.glob(f"{X}=2.2-{Y}=10*/study.json")).unlink()
    axis = grid_figure(cells_of(folder, X, Y), X, Y, "", "title").axes[0]
    assert np.ma.getmaskarray(axis.images[0].get_array()).tolist() == [
        [False, False],
        [True, False],
    ]


def test_the_verb_draws_and_writes_the_numbers(studies, tmp_path, capsys):
    folder, output = grid(studies), tmp_path / "map.png"
    words = ["map", str(folder), "--x", X, "--y", Y, "--output", str(output)]
    assert main([*words, "--panels", PANELS]) == 0
    assert "4 of 8" in capsys.readouterr().out
    assert output.stat().st_size > 5000
    assert len((tmp_path / "map.csv").read_text().splitlines()) == 9
    assert main(words) == 2
    assert "two studies" in capsys.readouterr().err

"""The recommendation of a study, its budget, and the map of studies over a grid."""

import json

import numpy as np
import pandas as pd
import pytest

from curvlab.analysis.figures import grid_figure
from curvlab.errors import UsageError
from curvlab.statistics import power
from curvlab.study.grid import grid_cells
from curvlab.study.verdict import compare, overall, recommend

NOISE = np.random.default_rng(0).normal(size=(4, 10))
NOISE -= NOISE.mean(axis=1, keepdims=True)  # means are what they are set to


def table_of(*rows):
    """A table of rows `(space, scores)`, compared with the first."""
    fields = [{"space": space, "scores": own, "mean": np.mean(own)} for space, own in rows]
    return compare(pd.DataFrame(fields))


def scores(mean, row=0):
    return list(mean + NOISE[row])


FLAT, HYPERBOLIC = ("flat", scores(60)), ("hyperbolic", scores(70, 1))


def report(*rows, label="FPST"):
    return recommend(label, table_of(*rows))


def test_the_simplest_of_the_best_spaces_is_recommended():
    found = report(FLAT, HYPERBOLIC, ("learned", scores(70.1, 2)))
    assert (found.space, found.alike) == ("hyperbolic", ("learned",))
    assert "Learned did not do better." in found.text
    assert found.score == pytest.approx(70)
    assert report(FLAT, HYPERBOLIC, ("learned", scores(75, 2))).space == "learned"
    assert report(FLAT, ("sphere", scores(61, 3)), HYPERBOLIC).space == "hyperbolic"


def test_a_difference_within_the_noise_is_none_and_the_budget_is_told():
    found = report(FLAT, ("hyperbolic", scores(60.1, 1)), ("sphere", scores(20, 2)))
    assert (found.space, found.alike, found.decided) == ("flat", ("hyperbolic",), False)
    assert "FPST: undecided. No difference was found, but hyperbolic may gain a" in found.text
    assert "Worse than flat: sphere." in found.text
    limit = float(found.text.split("With 10 runs a difference of about ")[1].split()[0])
    std = found.table.loc[1, "std"]
    assert power(limit, std, 10, 0.05 / 2) == pytest.approx(0.8, abs=0.01)


def few(mean, *noise):
    """Scores with this mean of a few runs."""
    return [mean + each for each in noise]


@pytest.mark.parametrize(
    ("curved", "decided"),
    [
        (few(60, 3, -3), False),  # two runs: a difference of 62 points is detectable
        (few(60, 0.001, -0.001), False),  # two runs, however near
        (few(60, 0.5, -0.5), False),
        (few(60, 4, -4, 0), False),
        (few(60, 0.1, -0.1, 0), True),
        (few(60, 0, 0, 0), True),
        (few(58, 1, -1, 0), True),  # interval from -4.5 to 0.5
        (few(50, 30, -30, 0), False),
    ],
)
def test_flat_is_recommended_as_decided_only_where_a_gain_of_a_point_is_excluded(curved, decided):
    found = report(("flat", [60.0] * len(curved)), ("hyperbolic", curved))
    assert (found.space, found.decided) == ("flat", decided)
    assert ("undecided" in found.text) != decided
    answer = overall([found])
    assert ("undecided for FPST" in answer) != decided
    assert ("not found to be worth it" in answer) == decided
    clear = report(("flat", [60.0] * 3), ("sphere", few(40, 1, 0, -1)), label="GCN")
    assert ("undecided for FPST" in overall([clear, found])) != decided


def test_flat_where_every_curved_space_is_worse():
    found = report(FLAT, ("hyperbolic", scores(40, 1)), ("sphere", scores(50, 2)))
    assert (found.space, found.alike) == ("flat", ())
    assert "every other space scores less, by 10.0" in found.text


def test_the_overall_answer_names_the_best_model_and_who_gains():
    gains = report(FLAT, HYPERBOLIC)
    stays = report(("flat", scores(90)), ("hyperbolic", scores(50, 1)), label="GCN")
    answer = overall([gains, stays])
    assert "worth it for FPST." in answer
    assert answer.endswith("The highest mean is 90.00, of GCN in flat space.")
    assert "not found to be worth it" in overall([stays])


def test_the_highest_mean_is_named_also_where_flat_space_is_recommended():
    found = report(("flat", few(50, 8, -8)), ("learned", few(86, 0, 0)))
    assert (found.space, found.score, found.decided) == ("flat", 50, False)
    assert overall([found]).endswith("The highest mean is 86.00, of FPST in learned space.")


@pytest.mark.nightly
def test_five_percent_of_null_studies_recommend_a_curved_space_or_call_one_worse():
    """Four spaces against flat: without a correction it were about 15 %."""
    wrong = []
    for flat, *others in np.random.default_rng(0).normal(60, 1, (250, 5, 5)).tolist():
        table = table_of(("flat", flat), *((str(i), own) for i, own in enumerate(others)))
        wrong.append((table["p_holm"] < 0.05).any())
    assert np.mean(wrong) < 0.05 + 2 * (0.05 * 0.95 / 250) ** 0.5


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
        content = {"overrides": words, "models": ["kappa_gcn"], "reports": [report]}
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
    cells = grid_cells(folder, X, Y)
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
    named = grid_cells(folder, X, Y, space="spherical")
    assert named["difference"].tolist() == [1.5 / 4, 1.5 / 4, 2.5, 2.5]


def test_an_incomplete_grid_is_refused(studies):
    folder = grid(studies)
    with pytest.raises(UsageError, match=r"no study whose overrides set dataset\.source\.radius"):
        grid_cells(folder, X, "dataset.source.radius")
    with pytest.raises(UsageError, match="--space learned must be one of hyperbolic, spherical"):
        grid_cells(folder, X, Y, space="learned")
    studies(f"{Y}=1.5", f"{X}=2.2")
    with pytest.raises(UsageError, match=r"has two studies of .*beta=1\.5.*exponent=2\.2"):
        grid_cells(folder, X, Y)


def test_studies_that_differ_in_more_than_the_grid_are_refused(studies):
    """Those that were set aside do not count."""
    folder = grid(studies)
    own = studies(f"{X}=9", f"{Y}=9", "dataset.source.num_nodes=40") / f"{X}=9-{Y}=9-x"
    (path,) = (file for file in folder.rglob("study.json") if "num_nodes" in file.parent.name)
    with pytest.raises(UsageError, match=r"also differ in dataset\.source\.num_nodes, .*40"):
        grid_cells(folder, X, Y)
    path.parent.rename(folder / "previous")
    assert len(grid_cells(folder, X, Y)) == 4
    content = json.loads((folder / "previous/study.json").read_text())
    own.mkdir()
    (own / "study.json").write_text(
        json.dumps(content | {"overrides": [f"{X}=9", f"{Y}=9"], "steps": 7})
    )
    with pytest.raises(UsageError, match="also differ in steps, "):
        grid_cells(folder, X, Y)


def test_the_figure_has_a_square_a_cell_and_a_frame_where_a_difference_was_found(studies):
    folder = grid(studies)
    axis, bar = grid_figure(grid_cells(folder, X, Y), X, Y, "title").axes
    np.testing.assert_array_equal(axis.images[0].get_array(), [[2.2, 3.5], [2.5, 3.5]])
    assert len(axis.patches) == 2
    assert axis.texts[0].get_text() == "+2.2 ± 0.5\nhyperbolic"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("exponent", "beta")
    low, high = bar.get_ylim()
    assert low == -high  # white is no difference
    next(folder.glob(f"{X}=2.2-{Y}=10*/study.json")).unlink()
    cells = grid_cells(folder, X, Y).assign(pm=np.nan)
    axis = grid_figure(cells, X, Y, "title").axes[0]
    assert axis.texts[0].get_text() == "+2.2\nhyperbolic"
    holes = np.ma.getmaskarray(axis.images[0].get_array()).tolist()
    assert holes == [[False, False], [True, False]]

"""The recommendation of a study, and its budget."""

import numpy as np
import pandas as pd
import pytest

from curvlab.statistics import power
from curvlab.study.floor import Floor
from curvlab.study.verdict import compared, overall, recommend, widths_saved

NOISE = np.random.default_rng(0).normal(size=(4, 10))
NOISE -= NOISE.mean(axis=1, keepdims=True)  # means are what they are set to


def table_of(*rows):
    """A table of rows `(space, scores)` or `(space, scores, dim)`, compared with the first."""
    fields = [dict(zip(("space", "scores", "dim"), (*row, 16), strict=False)) for row in rows]
    means = [{"mean": float(np.mean(row["scores"]))} for row in fields]
    return compared(pd.DataFrame([row | own for row, own in zip(fields, means, strict=True)]))


def scores(mean, row=0):
    return list(mean + NOISE[row])


FLAT, HYPERBOLIC = ("flat", scores(60)), ("hyperbolic", scores(70, 1))


def report(*rows, floor=None, label="FPST"):
    return recommend(label, table_of(*rows), floor)


def test_the_simplest_of_the_best_spaces_is_recommended():
    found = report(FLAT, HYPERBOLIC, ("learned", scores(70.1, 2)))
    assert (found.kind, found.space, found.alike) == ("curved", "hyperbolic", ("learned",))
    assert "Learned did not do better." in found.text
    assert found.score == pytest.approx(70)
    assert report(FLAT, HYPERBOLIC, ("learned", scores(75, 2))).space == "learned"
    assert report(FLAT, ("sphere", scores(61, 3)), HYPERBOLIC).space == "hyperbolic"


def test_a_difference_within_the_noise_is_none_and_the_budget_is_told():
    found = report(FLAT, ("hyperbolic", scores(60.1, 1)), ("sphere", scores(20, 2)))
    assert (found.kind, found.space) == ("no difference", "flat")
    assert "no difference was found with this budget" in found.text
    assert "Worse than flat: sphere." in found.text
    limit = float(found.text.split("With 10 runs a difference of about ")[1].split()[0])
    std = found.table.loc[1, "std"]
    assert power(limit, std, 10, 0.05 / 2) == pytest.approx(0.8, abs=0.01)


def test_flat_where_every_curved_space_is_worse():
    found = report(FLAT, ("hyperbolic", scores(40, 1)), ("sphere", scores(50, 2)))
    assert found.kind == "flat"
    assert "every other space scores less, by 10.0" in found.text


def test_the_overall_answer_names_the_best_model_and_who_gains():
    gains = report(FLAT, HYPERBOLIC)
    stays = report(("flat", scores(90)), ("hyperbolic", scores(50, 1)), label="GCN")
    answer = overall([gains, stays])
    assert "worth it for FPST." in answer
    assert "GCN in flat space, 9" in answer
    assert "not found to be worth it" in overall([stays])


@pytest.mark.parametrize(
    ("mean", "says"), [(60.0, "not found to differ"), (70.0, "more than"), (50.0, "less than")]
)
def test_what_narrower_spaces_save(mean, says):
    table = table_of(
        FLAT, HYPERBOLIC, ("hyperbolic", scores(mean, 1), 8), ("flat", scores(40, 2), 8)
    )
    of_space, of_flat = widths_saved(table)
    assert of_space.startswith("At dim 8, hyperbolic")
    assert says in of_space
    assert of_flat.startswith("At dim 8, flat scores 20.00 points less")


@pytest.mark.parametrize(
    ("floor", "kind"),
    [(None, "curved"), (Floor(3.0, 1.0, "chance"), "curved"), (Floor(5.0, 1.0, "chance"), "floor")],
)
def test_nothing_is_recommended_within_the_noise_of_the_floor(floor, kind):
    found = report(("flat", scores(4.2)), ("product", scores(5.9)), floor=floor)
    assert found.kind == kind
    assert ("worth it for FPST" in overall([found])) == (kind == "curved")
    assert ("floor of 5.00 ± 1.00 (chance)" in found.text) == (kind == "floor")
    assert ("Nothing is recommended" in overall([found])) == (kind == "floor")


def test_five_percent_of_null_studies_say_that_a_width_matters():
    """Two spaces at two widths: four sentences; 15 % of such studies had a wrong one."""
    said = []
    for flat, *narrow in np.random.default_rng(0).normal(60, 1, (250, 5, 5)).tolist():
        table = table_of(("flat", flat), *(("flat", own, 8) for own in narrow))
        said.append(any("not found to differ" not in sentence for sentence in widths_saved(table)))
    assert np.mean(said) < 0.05 + 2 * (0.05 * 0.95 / 250) ** 0.5

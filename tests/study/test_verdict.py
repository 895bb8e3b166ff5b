"""What a study recommends, and what it says of its budget."""

import numpy as np
import pytest

from curvlab.statistics import power
from curvlab.study.floor import Floor
from curvlab.study.verdict import (
    ModelReport,
    Outcome,
    compared,
    overall,
    verdict,
    widths_saved,
)

NOISE = np.random.default_rng(0).normal(size=(4, 10))
NOISE -= NOISE.mean(axis=1, keepdims=True)  # means are what they are set to


def outcome(space, mean, row=0, dim=16, model="fpst"):
    scores = tuple(float(score) for score in mean + NOISE[row])
    return Outcome(model=model, label=model.upper(), space=space, dim=dim, words=(), scores=scores)


def report(flat, *others):
    comparisons = compared(flat, others)
    return ModelReport(flat, comparisons, (), (), verdict(flat, comparisons))


def test_the_simplest_of_the_best_spaces_is_recommended():
    flat, hyperbolic = outcome("flat", 60), outcome("hyperbolic", 70, 1)
    found = report(flat, hyperbolic, outcome("learned", 70.1, 2))
    assert (found.verdict.kind, found.verdict.space) == ("curved", "hyperbolic")
    assert found.verdict.alike == ("learned",)
    assert "Learned did not do better." in found.verdict.text
    assert found.recommended.space == "hyperbolic"
    assert report(flat, hyperbolic, outcome("learned", 75, 2)).recommended.space == "learned"
    assert report(flat, outcome("sphere", 61, 3), hyperbolic).recommended.space == "hyperbolic"


def test_a_difference_within_the_noise_is_none_and_the_budget_is_told():
    found = report(outcome("flat", 60), outcome("hyperbolic", 60.1, 1), outcome("sphere", 20, 2))
    assert (found.verdict.kind, found.verdict.space) == ("no difference", "flat")
    assert "no difference was found with this budget" in found.verdict.text
    assert "Worse than flat: sphere." in found.verdict.text
    pair = found.others[0].paired
    limit = float(found.verdict.text.split("With 10 runs a difference of about ")[1].split()[0])
    assert power(limit, pair.std, 10, 0.05 / 2) == pytest.approx(0.8, abs=0.01)


def test_flat_where_every_curved_space_is_worse():
    found = report(outcome("flat", 60), outcome("hyperbolic", 40, 1), outcome("sphere", 50, 2))
    assert found.verdict.kind == "flat"
    assert "every other space scores less, by 10.0" in found.verdict.text


def test_the_overall_answer_names_the_best_model_and_who_gains():
    gains = report(outcome("flat", 60), outcome("hyperbolic", 70, 1))
    stays = report(outcome("flat", 90, model="gcn"), outcome("hyperbolic", 50, 1, model="gcn"))
    answer = overall([gains, stays])
    assert "worth it for FPST." in answer
    assert "GCN in flat space, 9" in answer
    assert "not found to be worth it" in overall([stays])


@pytest.mark.parametrize(
    ("mean", "says"), [(60.0, "not found to differ"), (70.0, "more than"), (50.0, "less than")]
)
def test_what_narrower_twins_save(mean, says):
    narrow = [outcome("hyperbolic", mean, 1, dim=8), outcome("flat", 40, 2, dim=8)]
    of_space, of_flat = widths_saved(compared(outcome("flat", 60), narrow))
    assert of_space.startswith("At dim 8, hyperbolic")
    assert says in of_space
    assert of_flat.startswith("At dim 8, flat scores 20.00 points less")


@pytest.mark.parametrize(
    ("floor", "kind"),
    [(None, "curved"), (Floor(3.0, 1.0, "chance"), "curved"), (Floor(5.0, 1.0, "chance"), "floor")],
)
def test_nothing_is_recommended_within_the_noise_of_the_floor(floor, kind):
    flat, product = outcome("flat", 4.2), outcome("product", 5.9, 0)
    comparisons = compared(flat, [product])
    assert comparisons[0].significant
    found = verdict(flat, comparisons, floor)
    assert found.kind == kind
    answer = overall([ModelReport(flat, comparisons, (), (), found)])
    assert ("worth it for FPST" in answer) == (kind == "curved")
    assert ("floor of 5.00 ± 1.00 (chance)" in found.text) == (kind == "floor")
    assert ("Nothing is recommended" in answer) == (kind == "floor")


def test_five_percent_of_null_studies_say_that_a_width_matters():
    """Two spaces at two widths: four sentences; 15 % of such studies had a wrong one."""
    generator = np.random.default_rng(0)
    said = []
    for scores in generator.normal(60, 1, (250, 5, 5)):
        flat, *narrow = (
            Outcome("gcn", "GCN", "flat", 8, (), scores=tuple(own.tolist())) for own in scores
        )
        sentences = widths_saved(compared(flat, narrow))
        said.append(any("not found to differ" not in sentence for sentence in sentences))
    assert np.mean(said) < 0.05 + 2 * (0.05 * 0.95 / 250) ** 0.5

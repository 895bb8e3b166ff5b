"""The recommendation of a study, and its budget."""

import numpy as np
import pandas as pd
import pytest

from curvlab.statistics import power
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
    assert (found.space, found.alike) == ("flat", ("hyperbolic",))
    assert "no difference was found with this budget" in found.text
    assert "Worse than flat: sphere." in found.text
    limit = float(found.text.split("With 10 runs a difference of about ")[1].split()[0])
    std = found.table.loc[1, "std"]
    assert power(limit, std, 10, 0.05 / 2) == pytest.approx(0.8, abs=0.01)


def test_flat_where_every_curved_space_is_worse():
    found = report(FLAT, ("hyperbolic", scores(40, 1)), ("sphere", scores(50, 2)))
    assert (found.space, found.alike) == ("flat", ())
    assert "every other space scores less, by 10.0" in found.text


def test_the_overall_answer_names_the_best_model_and_who_gains():
    gains = report(FLAT, HYPERBOLIC)
    stays = report(("flat", scores(90)), ("hyperbolic", scores(50, 1)), label="GCN")
    answer = overall([gains, stays])
    assert "worth it for FPST." in answer
    assert "GCN in flat space, 9" in answer
    assert "not found to be worth it" in overall([stays])


def test_five_percent_of_null_studies_recommend_a_curved_space_or_call_one_worse():
    """Four spaces against flat: without a correction it were about 15 %."""
    wrong = []
    for flat, *others in np.random.default_rng(0).normal(60, 1, (250, 5, 5)).tolist():
        table = table_of(("flat", flat), *((str(i), own) for i, own in enumerate(others)))
        wrong.append((table["p_holm"] < 0.05).any())
    assert np.mean(wrong) < 0.05 + 2 * (0.05 * 0.95 / 250) ** 0.5

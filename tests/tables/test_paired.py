"""Runs are grouped by what they built, and tested over common seeds as a study does."""

import pandas as pd
import pytest

from curvlab.errors import UsageError
from curvlab.study.verdict import compare
from curvlab.tables.paired import comparison, group_runs
from stored_runs import result


def run(score, seed=0, dim=16, **others):
    target = "curvlab.models.graph_network.GCN"
    config = {
        "model": {"_target_": target, "name": "gcn", "dim": dim},
        "dataset": {"name": "cora", "metric": "accuracy"},
        "trainer": {"max_steps": 5},
        "seed": seed,
    }
    fields = {"dataset": "cora", "task": "node_classification", "seed": seed, "score": score}
    return result(config, **(fields | {"wall_seconds": 2.0 + seed} | others))


def test_seeds_are_one_group_and_options_tell_groups_apart():
    runs = [run(80, 0), run(70, 0, dim=8), run(81, 1), run(71, 1, dim=8)]
    first, second = group_runs(runs)
    assert first.scores == {0: 80, 1: 81}
    assert second.scores == {0: 70, 1: 71}
    assert (first.label, second.label) == ("dim=default", "dim=8")
    assert second.settings == {"model.dim": 8}


def test_compare_says_what_a_study_says():
    """Interval, p and correction of the same scores, equal differences among them."""
    scores = {16: (80.0, 82.0, 85.0), 8: (78.5, 80.5, 83.500008), 4: (70.0, 71.2, 72.1)}
    runs = [
        run(score, seed, dim=dim) for dim, of in scores.items() for seed, score in enumerate(of)
    ]
    table = comparison(group_runs(runs))
    study = compare(pd.DataFrame({"space": list(scores), "scores": scores.values(), "dim": 16}))
    names = ("common", "difference", "difference_pm", "p", "p_holm")
    same = ("pairs", "difference", "pm", "p_t", "p_holm")
    for name, other in zip(names, same, strict=True):
        assert table[name][1:].tolist() == pytest.approx(study[other][1:].tolist(), nan_ok=True)
    assert table["p"][1] == 0.25
    assert table["difference_pm"].isna().tolist() == [True, True, False]


def test_compare_uses_the_words_of_claims():
    scores = {16: (80.0, 82.0, 85.0), 8: (90.0, 92.1, 95.0), 4: (70.0, 72.1, 75.0)}
    scores |= {2: (80.1, 82.0, 84.9), 1: (80.0, 89.0, 78.0)}
    runs = [
        run(score, seed, dim=dim) for dim, of in scores.items() for seed, score in enumerate(of)
    ]
    table = comparison(group_runs(runs))
    words = [text.partition(" (")[0] for text in table["above_the_first"]]
    assert words == ["", "confirmed", "contradicted", "level", "undecided"]
    assert table["margin"].tolist() == [1.0] * 5  # a point of accuracy


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([run(80, status="failed")], "none of these runs has finished"),
        ([run(80), run(80, task="reconstruction")], "cannot be compared"),
        ([run(80), run(81)], "occurs twice"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, why):
    with pytest.raises(UsageError, match=why):
        group_runs(runs)

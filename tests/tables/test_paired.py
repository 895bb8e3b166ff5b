"""Runs are grouped by what they built, and tested over common seeds as a study does."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from curvlab.errors import UsageError
from curvlab.run.reporting import means_over_seeds
from curvlab.study.verdict import compare
from curvlab.tables.paired import comparison, group_runs
from stored_runs import result


def run(score, seed=0, dim=16, split=None, **others):
    target = "curvlab.models.graph_network.GCN"
    config = {
        "model": {"_target_": target, "name": "gcn", "dim": dim},
        "split": split or {},
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
    assert (first.label, second.label) == ("dim=16", "dim=8")
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


def test_runs_on_one_split_count_as_one(tmp_path, capsys):
    """Thirty runs on ten splits, the first ten without a cycle, against scipy."""
    scores = np.random.default_rng(0).normal([[80.0], [79.0]], 2.0, (2, 30))
    given = {"_target_": "curvlab.data.splits.nodes.GivenSplit", "name": "given"}
    runs = []
    for dim, of in zip((16, 8), scores, strict=True):
        for seed, score in enumerate(of):
            split = given | ({"cycle": 10} if seed >= 10 else {})
            runs.append(run(float(score), seed, dim, split))
            runs[-1].save(tmp_path / str(dim) / f"seed{seed}")
    first, second = group_runs(runs)
    assert set(second.settings) == {"model.dim"}
    table = comparison([first, second])
    means = scores.reshape(2, 3, 10).mean(1)
    expected = stats.ttest_rel(means[1], means[0])
    assert table["p"][1] == pytest.approx(expected.pvalue)
    assert table[["runs", "common", "pairs"]].loc[1].tolist() == [30, 30, 10]
    half_width = stats.t(9).ppf(0.975) * stats.sem(means, axis=1)
    assert (table["high"] - table["mean"]).tolist() == pytest.approx(half_width.tolist())
    means_over_seeds(tmp_path / "8" / f"seed{seed}" for seed in range(30))
    said = " ".join(capsys.readouterr().out.split())
    assert f"30 seeds on 10 splits: {means[1].mean():.2f} ± {half_width[1]:.2f} (95 %" in said


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

"""Runs are grouped by what they built, and tested over common seeds as a study does."""

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from curvlab.analysis.table_figures import compared_figure
from curvlab.errors import UsageError
from curvlab.results.result import Result
from curvlab.study.verdict import compared
from curvlab.tables.paired import comparison, grouped


def run(score, seed=0, model="gcn", dim=16, **others):
    target = "curvlab.models.gcn.GCN"
    config = {
        "model": {"_target_": target, "name": model, "dim": dim},
        "dataset": {"name": "cora", "metric": "accuracy"},
        "trainer": {"max_steps": 5},
        "seed": seed,
    }
    fields = {"task": "node_classification", "status": "finished"} | others
    return Result(
        model=model, dataset="cora", manifold="euclidean", seed=seed, experiment=None,
        config_hash="", config=config, score=score, wall_seconds=2.0 + seed, **fields,
    )  # fmt: skip


def test_seeds_are_one_group_and_options_tell_groups_apart():
    runs = [run(80, 0), run(70, 0, dim=8), run(81, 1), run(71, 1, dim=8)]
    first, second = grouped(runs)
    assert first.scores == {0: 80, 1: 81}
    assert second.scores == {0: 70, 1: 71}
    assert (first.label, second.label) == ("dim=default", "dim=8")
    assert second.settings == {"model.dim": 8}


def test_names_alone_tell_models_apart():
    labels = [group.label for group in grouped([run(80), run(70, model="hgcn", dim=8)])]
    assert labels == ["gcn", "hgcn"]


def test_compare_says_what_a_study_says():
    """Interval, p and correction of the same scores, equal differences among them."""
    scores = {16: (80.0, 82.0, 85.0), 8: (78.5, 80.5, 83.500008), 4: (70.0, 71.2, 72.1)}
    runs = [
        run(score, seed, dim=dim) for dim, of in scores.items() for seed, score in enumerate(of)
    ]
    table = comparison(grouped(runs))
    study = compared(pd.DataFrame({"space": list(scores), "scores": scores.values(), "dim": 16}))
    names = ("common", "difference", "difference_pm", "p", "p_holm")
    same = ("pairs", "difference", "pm", "p_t", "p_holm")
    for name, other in zip(names, same, strict=True):
        assert table[name][1:].tolist() == pytest.approx(study[other][1:].tolist(), nan_ok=True)
    assert table["p"][1] == 0.25
    assert table["difference_pm"].isna().tolist() == [True, True, False]


def test_costs_are_medians():
    table = comparison(grouped([run(80, seed) for seed in range(3)]))
    assert table["seconds"].tolist() == [3.0]
    assert table["mean"].tolist() == [80.0]


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([run(80, status="failed")], "none of these runs has finished"),
        ([run(80), run(80, task="reconstruction")], "cannot be compared"),
        ([run(80), run(81)], "is there twice"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, why):
    with pytest.raises(UsageError, match=why):
        grouped(runs)


def test_the_picture_has_a_row_for_each_group():
    groups = grouped([run(80 + d, s, dim=d) for d in (4, 8, 32) for s in range(3)])
    figure = compared_figure(groups, comparison(groups), "GCN on Cora")
    FigureCanvasAgg(figure).draw()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["dim=4", "dim=8", "dim=32"]
    for text in figure.axes[0].get_yticklabels():
        assert figure.bbox.x0 <= text.get_window_extent().x0


def test_several_groups_are_corrected_for_their_number():
    runs = [run(80 + seed, seed) for seed in range(3)]
    runs += [run(s, seed, dim=8) for seed, s in enumerate((78.0, 79.5, 80.0))]
    runs += [run(s, seed, dim=4) for seed, s in enumerate((70.0, 71.2, 72.1))]
    runs.append(run(60, 0, dim=2))  # one common seed: no test, and none to correct for
    table = comparison(grouped(runs)).set_index("label")
    p, corrected = table["p"], table["p_holm"]
    small, large = sorted(("dim=8", "dim=4"), key=lambda label: p[label])
    assert corrected[small] == pytest.approx(2 * p[small])
    assert corrected[large] == pytest.approx(max(p[large], corrected[small]))
    assert corrected[["dim=default", "dim=2"]].isna().all()

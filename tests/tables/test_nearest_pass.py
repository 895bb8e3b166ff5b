"""The pass and the ranks that are nearest to published numbers, on runs of the test's making."""

from math import sqrt

import pytest

from composing import CONFIGS
from curvlab.analysis.style import metric_name
from curvlab.tables.nearest_pass import (
    nearest_pass_table,
    panels_of_one_length,
    residual_table,
    residuals_by_pass,
)
from curvlab.tables.report import build_report
from curvlab.tables.spec import load_table
from stored_runs import extend

TABLE = "cat/table1"
PASSES, STEPS_PER_PASS = 4, 25
# FB15k-237, published for CAT and for a Euclidean branch alone
PUBLISHED = {"mrr": 0.2904, "hits10": 0.4730}
EUCLIDEAN = {"mrr": 0.2706, "hits10": 0.4486}


AWAY = {"raw_": (-0.20, -0.10, 0.01, 0.03), "": (0.05, 0.10, 0.20, 0.30)}
"""Residuals of a run in each pass: raw ranks come nearest in pass 3, filtered ones in pass 1."""


@pytest.fixture
def reports(write_run, tmp_path):
    """Reports on one run of CAT."""
    write_curves(write_run, "cat", PUBLISHED, AWAY)
    panels = [build_report(spec, tmp_path) for spec in load_table(CONFIGS, TABLE)]
    return panels_of_one_length(panels)


def write_curves(write_run, model, published, away):
    """A run whose validation metrics are so far from the published ones."""
    trainer = {"epochs": 20, "steps_per_epoch": STEPS_PER_PASS}  # it ended sooner
    path = write_run(model, "fb15k237", 0, None, table=TABLE, trainer=trainer)
    columns = {
        f"{prefix}{metric}": [published[metric] + value for value in values]
        for prefix, values in away.items()
        for metric in published
    }
    lines = [",".join(["step", *(f"val/{name}" for name in columns)])]
    passes = len(away[""])
    for number in range(passes):
        row = [STEPS_PER_PASS * (number + 1), *(values[number] for values in columns.values())]
        lines.append(",".join(map(str, row)))
    path.with_name("metrics.csv").write_text("\n".join(lines) + "\n")
    test = {"raw_mrr": 0.2804, "raw_hits10": 0.5030, "mrr": 0.3904, "hits10": 0.6730}
    extend(
        path, status="finished", steps=passes * STEPS_PER_PASS, metrics={"test": test, "val": {}}
    )


def test_the_nearest_pass_is_the_one_with_the_least_root_mean_square(reports, tmp_path):
    found = nearest_pass_table(reports, tmp_path).set_index("ranks")
    assert found["dataset"].tolist() == ["FB15k-237"] * 2
    assert found["nearest pass"].to_dict() == {"filtered": "1 of 4", "raw": "3 of 4"}
    assert found["validation, that pass"].to_dict() == {"filtered": "0.050", "raw": "0.010"}
    test = {"filtered": sqrt((0.1**2 + 0.2**2) / 2), "raw": sqrt((0.01**2 + 0.03**2) / 2)}
    assert found["test"].to_dict() == {name: f"{value:.3f}" for name, value in test.items()}


def test_passes_that_only_some_methods_have_do_not_compete(write_run, tmp_path):
    """CAT's run has two passes, which are nearer, beyond the four of the Euclidean branch."""
    write_curves(write_run, "cat_euclidean", EUCLIDEAN, AWAY)
    longer = {prefix: (*values, 0.0, 0.0) for prefix, values in AWAY.items()}
    write_curves(write_run, "cat", PUBLISHED, longer)
    panels = [build_report(spec, tmp_path) for spec in load_table(CONFIGS, TABLE)]
    both = panels_of_one_length(panels)
    found = nearest_pass_table(both, tmp_path).set_index("ranks")
    assert found["nearest pass"].to_dict() == {"filtered": "1 of 4", "raw": "3 of 4"}


def test_every_pass_of_a_run_has_the_residual_of_each_metric(reports, tmp_path):
    residuals = residuals_by_pass(reports, tmp_path)
    assert sorted(residuals["pass"].unique()) == [1, 2, 3, 4]
    assert len(residuals) == PASSES * 4
    last = residuals[(residuals["pass"] == 4) & (residuals["ranks"] == "raw")]
    assert last["residual"].tolist() == pytest.approx([0.03, 0.03])


def test_residuals_of_filtered_ranks_stand_in_brackets(reports):
    (row,) = residual_table(reports, metric_name).to_dict("records")
    assert row["FB15k-237, MRR"] == "\N{MINUS SIGN}0.010 (+0.100)"
    assert row["FB15k-237, Hits@10"] == "+0.030 (+0.200)"

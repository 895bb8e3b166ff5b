import json
from dataclasses import replace

import pandas as pd
import pytest

from curvlab.tables import build_report
from curvlab.tables.collect import collect, lookup


def test_a_run_is_one_row(spec, write_run, tmp_path):
    write_run("gcn", "power", 3, 97.5, steps=500)
    run = collect(tmp_path / "fpst/fig3", spec.report).iloc[0]
    assert (run["row"], run["column"], run["seed"]) == ("gcn", "power", 3)
    assert (run["status"], run["value"], run["steps"]) == ("finished", 97.5, 500)
    assert run["path"] == "power/gcn/seed3/result.json"


@pytest.mark.parametrize(
    ("curvatures", "largest"),
    [({"kappa/0": [0.25, -0.5], "kappa/1": [0.125]}, 0.5), ({"kappa/0": [0.0]}, 0.0), ({}, None)],
)
def test_the_second_number_may_be_the_largest_curvature(
    table1, write_run, tmp_path, curvatures, largest
):
    path = write_run("fpst", "cora", 0, 80.0, table="fpst/table1", metric="f1_micro")
    path.write_text(json.dumps({**json.loads(path.read_text()), "curvatures": curvatures}))
    second = collect(tmp_path / "fpst/table1", table1.report).iloc[0]["second"]
    assert (None if pd.isna(second) else second) == largest


def test_no_directory_holds_no_runs(spec, tmp_path):
    runs = collect(tmp_path / "nowhere", spec.report)
    assert len(runs) == 0
    assert "row" in runs.columns


def test_columns_may_be_numbers(dimensions, write_run, tmp_path):
    write_run("fpst", "web_edu", 0, 92.0, dim=4)
    run = collect(tmp_path / "fpst/fig3", dimensions.report).iloc[0]
    assert run["column"] == 4


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "fin',
        "",
        "[1, 2]",
        '{"status": "running"}',
        '{"status": "finished"}',
        '{"status": "finished", "seed": 0, "config": {"model": {"name": "gcn"}}, "metrics": {}}',
    ],
    ids=["half-written", "empty", "list", "unknown status", "no config", "no dataset"],
)
def test_foreign_files_are_named_once_and_left_out(spec, write_run, tmp_path, caplog, text):
    write_run("gcn", "power", 0, 97.5)
    for name in ("one", "two"):
        (tmp_path / "fpst/fig3" / name).mkdir()
        (tmp_path / "fpst/fig3" / name / "result.json").write_text(text)
    runs = collect(tmp_path / "fpst/fig3", spec.report)
    assert len(runs) == 1
    (record,) = caplog.records
    assert "one/result.json" in record.message
    assert "two/result.json" in record.message
    assert "power" not in record.message


def test_bytes_that_are_not_text_are_left_out(spec, write_run, tmp_path, caplog):
    write_run("gcn", "power", 0, 97.5).write_bytes(b"\xff\xfe\x00\x9c")
    assert len(collect(tmp_path / "fpst/fig3", spec.report)) == 0
    assert "not readable as JSON" in caplog.text


def test_finished_without_the_metric_is_no_result(spec, write_run, tmp_path, caplog):
    write_run("gcn", "power", 0, None)
    assert len(collect(tmp_path / "fpst/fig3", spec.report)) == 0
    assert "test.map" in caplog.text


def test_a_table_may_compare_what_each_run_is_about(spec, write_run, tmp_path):
    by_score = replace(spec.report, metric="score")
    for dataset, metric in (("power", "roc_auc"), ("web_edu", "accuracy")):
        path = write_run("gcn", dataset, 0, 1.0, metric=metric)
        path.write_text(json.dumps({**json.loads(path.read_text()), "score": 70.0}))
    write_run("gat", "power", 0, 1.0)
    runs = collect(tmp_path / "fpst/fig3", by_score)
    assert runs["value"].tolist() == [70.0, 70.0]


def test_a_block_may_have_the_runs_of_one_dataset(spec, write_run, tmp_path, caplog):
    write_run("gcn", "power", 0, 1.0)
    write_run("gcn", "web_edu", 0, 2.0)
    of_power = replace(spec.report, where={"dataset.name": "power"})
    assert collect(tmp_path / "fpst/fig3", of_power)["value"].tolist() == [1.0]
    assert not caplog.records
    unknown = replace(spec.report, where={"dataset.nickname": "power"})
    assert len(collect(tmp_path / "fpst/fig3", unknown)) == 0
    assert "dataset.nickname" in caplog.text


def test_a_metric_that_is_not_finite_has_diverged(spec, write_run, tmp_path):
    path = write_run("gcn", "power", 0, 1.0)
    result = json.loads(path.read_text())
    result["metrics"]["test"]["map"] = float("nan")
    path.write_text(json.dumps(result))
    assert collect(tmp_path / "fpst/fig3", spec.report)["status"].tolist() == ["diverged"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", [1]),
        ("seed", None),
        ("seed", "zero"),
        ("seed", True),
        ("steps", "many"),
        ("wall_seconds", [1]),
        ("changed", 5),
        ("score", None),
        ("config", "none"),
        ("config.trainer", "fast"),
        ("config.trainer.max_steps", "100"),
        ("config.trainer.patience", [1]),
        ("config.task", "classification"),
        ("config.task.split", "random"),
        ("config.split", ["random"]),
    ],
)
def test_a_damaged_value_leaves_its_file_out_and_is_named(
    spec, write_run, tmp_path, caplog, path, value
):
    for seed in (0, 1):
        file = write_run("gcn", "power", seed, 97.5, folder=f"seed{seed}", task={})
        result = json.loads(file.read_text()) | {"score": 97.5}
        file.write_text(json.dumps(result))
    *groups, key = path.split(".")
    lookup({"all": result}, ".".join(["all", *groups]))[key] = value
    file.write_text(json.dumps(result))
    by_score = replace(spec, report=replace(spec.report, metric="score"))
    assert build_report(by_score, tmp_path).cells["seeds"].sum() == 1
    (record,) = caplog.records
    assert record.message.endswith(f": seed1/result.json (no valid {path})")


def test_lookup():
    assert lookup({"a": {"b": 1}}, "a.b") == 1
    with pytest.raises(KeyError, match=r"a\.c"):
        lookup({"a": {"b": 1}}, "a.c")
    with pytest.raises(KeyError, match=r"a\.b\.c"):
        lookup({"a": {"b": 1}}, "a.b.c")


def test_a_run_that_validation_ended_had_the_steps_that_it_was_given(spec, write_run, tmp_path):
    ended = {"max_steps": 1000, "patience": 100}
    write_run("gcn", "power", 0, 90.0, steps=230, trainer=ended)
    write_run("gcn", "power", 1, None, status="diverged", steps=40, trainer=ended)
    write_run("gcn", "power", 2, 90.0, steps=500)
    runs = collect(tmp_path / "fpst/fig3", spec.report).set_index("seed")
    assert runs["steps"].tolist() == [1000, 40, 500]
    assert runs["patience"].isna().tolist() == [False, False, True]
    assert runs["patience"].iloc[0] == 100

"""A table of runs reads as the folders it stands for, and damage to it is noticed."""

import json
import time
from pathlib import Path

import pandas as pd
import pytest

import stored_runs
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.result import load, read_result, result_files
from curvlab.results.run_tables import FILES, RUN, read_rows, text_of, write_rows

SEEDS = ("gcn/seed0", "gcn/seed1", "gat/seed0")


def result(seed=0, model="gcn", **values):
    what = {"model": model, "seed": seed, "experiment": "a/one"}
    return stored_runs.result({"model": {"name": model}, "seed": seed}, **what, **values)


def row(run, **values):
    model, _, seed = run.partition("/seed")
    return {
        RUN: run,
        **vars(result(int(seed), model, **values)),
        FILES: {"metrics.csv": "step\r\n"},
    }


@pytest.fixture
def table(tmp_path) -> Path:
    file = tmp_path / "a" / "one.jsonl.gz"
    write_rows(file, map(row, SEEDS))
    return file


def test_rows_read_as_the_folders_of_their_runs(table, tmp_path):
    folders = [tmp_path / "a" / "one" / run for run in sorted(SEEDS)]
    for above in (tmp_path, tmp_path / "a", tmp_path / "a" / "one"):
        assert [path.parent for path in result_files(above)] == folders
    assert [path.parent for path in result_files(folders[0].parent)] == folders[:1]
    assert read_result(folders[1]) == result()
    assert load(folders[1] / "result.json") == vars(result())
    assert text_of(folders[1] / "metrics.csv") == "step\r\n"
    assert text_of(folders[1] / "routing.csv") is None
    assert read_result(folders[1].with_name("seed7")) is None
    assert RunDirectory(folders[1]).conclusion(result().config_hash) == result()
    assert RunDirectory(folders[1]).conclusion(result(1).config_hash) is None


def test_the_same_cell_in_another_table_of_runs_is_taken_over_with_its_curves(table, tmp_path):
    own = tmp_path / "b" / "two" / SEEDS[0]
    directory, wanted = RunDirectory(own), result()
    found = directory.elsewhere(tmp_path, wanted.config_hash)
    assert found.path == tmp_path / "a" / "one" / SEEDS[0]
    assert directory.elsewhere(tmp_path / "elsewhere", wanted.config_hash) is None
    assert directory.elsewhere(tmp_path, result(1).config_hash) is None
    own.mkdir(parents=True)
    wanted.experiment, wanted.changed = "b/two", ["model.dim=8"]
    assert directory.take_over(found, wanted) == wanted == read_result(own)
    assert (own / "metrics.csv").read_bytes() == b"step\r\n"


def test_a_table_is_jsonl_of_equal_bytes_at_any_time_and_read_again_when_written(
    table, monkeypatch
):
    assert pd.read_json(table, lines=True)["run"].tolist() == sorted(SEEDS)
    first = table.read_bytes()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    write_rows(table, map(row, reversed(SEEDS)))
    assert table.read_bytes() == first
    assert len(read_rows(table)) == 3
    write_rows(table, [row(SEEDS[0], score=2.0)])
    assert [row["score"] for row in read_rows(table).values()] == [2.0]


def test_no_changed_byte_changes_a_row(table):
    whole, rows = table.read_bytes(), json.dumps(read_rows(table))
    refused = 0
    for i in range(0, len(whole), 3):
        damaged = table.with_name(f"{i}.jsonl.gz")
        damaged.write_bytes(whole[:i] + bytes([whole[i] ^ 16]) + whole[i + 1 :])
        try:
            assert json.dumps(read_rows(damaged)) == rows  # of a byte that says the time, or such
        except UsageError:
            refused += 1
    assert refused > len(whole) / 3 - 10


@pytest.mark.parametrize("content", [b"", b"no archive", b'{"run": "x"}'])
def test_a_run_in_a_damaged_table_is_not_taken_for_missing(table, tmp_path, content):
    table.write_bytes(content)
    with pytest.raises(UsageError, match="restore it"):
        read_result(tmp_path / "a" / "one" / SEEDS[0])

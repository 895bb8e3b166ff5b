"""Which offline runs are uploaded, and what a table becomes on W&B."""

import json

import pytest

from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table
from curvlab.tables.wandb_sync import log_table, offline_runs

CELL = {"model": "gcn", "dataset": "cora", "task": "", "manifold": "", "seed": 0, "config": {}}
CELL |= {"experiment": None, "config_hash": "0"}


def offline(folder, status="finished", uploaded=False, name="1"):
    """A run's folder as wandb leaves it without a connection."""
    run = folder / "wandb" / f"offline-run-{name}"
    run.mkdir(parents=True)
    (run / "run-1.wandb").touch()
    if uploaded:
        (run / "run-1.wandb.synced").touch()
    if status:
        (folder / "result.json").write_text(json.dumps({"status": status, **CELL}))
    return run


def test_runs_with_a_result_are_uploaded_once(tmp_path):
    done, diverged = offline(tmp_path / "a"), offline(tmp_path / "b", status="diverged")
    offline(tmp_path / "c", status=None)
    offline(tmp_path / "d", status="failed")
    offline(tmp_path / "e", uploaded=True)
    assert offline_runs(tmp_path) == [done, diverged]


def test_a_run_that_was_set_aside_is_not(tmp_path):
    """Its id is that of the run in its place, which it would overwrite."""
    now = offline(tmp_path / "seed0")
    offline(tmp_path / "seed0" / "previous" / "0123")
    assert offline_runs(tmp_path) == [now]


def test_tables_are_uploaded_too_wherever_the_search_begins(tmp_path):
    table = offline(tmp_path, status=None, name="20261123_101010-table-fpst-table1")
    offline(tmp_path / "c", status=None, name="20261123_101010-0123456789abcdef")
    assert offline_runs(tmp_path) == [table]
    assert offline_runs(tmp_path / "wandb") == [table]


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        offline_runs(tmp_path / "nowhere")


def test_a_table_without_a_result_is_not_logged(script, tmp_path):
    code, out, err = script("wandb_sync.py", str(tmp_path), "--table", "fpst/fig3")
    assert (code, out) == (2, "")
    assert f"no finished run of fpst/fig3 below {tmp_path}: " in err


def test_the_folder_of_a_tables_runs_may_be_named(script, tmp_path, monkeypatch):
    """Here that of the repository's own, which are read without being asked in a fresh clone."""
    logged = {}

    def log_table(reports, name, *_):
        logged[name] = int(sum(report.cells["seeds"].sum() for report in reports))
        return "table-fpst-fig3", True

    monkeypatch.setattr("curvlab.cli.wandb_sync.log_table", log_table)
    stored = CONFIGS.parent / "docs" / "results" / "tables"
    code, out, err = script("wandb_sync.py", "--table", "fpst/fig3", str(stored))
    assert (code, out) == (0, "logged table-fpst-fig3\n"), err
    assert logged["fpst/fig3"] > 0


def test_a_report_takes_no_folder(script, tmp_path):
    code, _, err = script("wandb_sync.py", str(tmp_path), "--report", "fpst/fig3")
    assert code == 2
    assert err == f"wandb_sync.py: --report reads the runs on the site: leave out {tmp_path}\n"


def test_a_table_is_an_artifact_with_its_cells(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    logged = {}

    class Run:
        def log_artifact(self, artifact):
            logged["artifact"] = artifact

        def finish(self):
            logged["finished"] = True

    monkeypatch.setattr(wandb, "login", lambda **_: False)
    monkeypatch.setattr(wandb, "init", lambda **options: logged.update(options) or Run())
    reports = [build_report(spec, tmp_path) for spec in load_table(CONFIGS, "fpst/fig4")]
    assert log_table(reports, "fpst/fig4", "curvlab", tmp_path) == ("table-fpst-fig4", False)
    assert (logged["group"], logged["mode"]) == ("fpst/fig4", "offline")
    entries = logged["artifact"].manifest.entries
    assert sum(name.endswith(".table.json") for name in entries) == 2
    assert logged["finished"]

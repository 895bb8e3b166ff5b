"""Which offline runs are uploaded, and what a table becomes on W&B."""

import json
from pathlib import Path

import pytest

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table
from curvlab.wandb_sync import log_table, offline_runs

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
CELL = {"model": "gcn", "dataset": "cora", "task": "", "manifold": "", "seed": 0, "config": {}}
CELL |= {"experiment": None, "config_hash": "0"}


def offline(folder, status="finished", uploaded=False):
    """A run's folder as wandb leaves it without a connection."""
    run = folder / "wandb" / "offline-run-1"
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


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        offline_runs(tmp_path / "nowhere")


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
    assert log_table(reports, "fpst/fig4", "curvlab", tmp_path) == "table-fpst-fig4"
    assert (logged["group"], logged["mode"]) == ("fpst/fig4", "offline")
    entries = logged["artifact"].manifest.entries
    assert sum(name.endswith(".table.json") for name in entries) == 2
    assert logged["finished"]

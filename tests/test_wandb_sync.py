"""Which offline runs are uploaded."""

import json

import pytest

from curvlab.cli.wandb_sync import offline_runs
from curvlab.errors import UsageError

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


def test_runs_with_a_result_are_uploaded_once(tmp_path, script):
    """One that was set aside has the id of the run in its place, which it would overwrite."""
    done, diverged = offline(tmp_path / "a"), offline(tmp_path / "b", status="diverged")
    offline(tmp_path / "a" / "previous" / "0123")
    offline(tmp_path / "c", status=None)
    offline(tmp_path / "d", status="failed")
    offline(tmp_path / "e", uploaded=True)
    assert offline_runs(tmp_path) == [done, diverged]
    code, said, _ = script("wandb_sync.py", str(tmp_path), "--dry-run")
    assert code == 0
    assert f"would upload {done}\n" in said
    assert "2 finished offline runs below" in said


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        offline_runs(tmp_path / "nowhere")

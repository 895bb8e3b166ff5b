"""Comparisons on W&B: the dashboard, stored runs as runs of W&B."""

import json
from io import StringIO

import pandas as pd
import pytest

from curvlab.cli.wandb_files import read_offline
from curvlab.cli.wandb_sync import dashboard, offline_runs
from curvlab.config.folder import CONFIGS
from curvlab.results.run_tables import SUFFIX, read_rows

pytest.importorskip("wandb")
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic V1 style")  # of wandb-workspaces

STORED = CONFIGS.parent / "docs" / "results" / "tables" / "fpst" / "fig3_clamp"


def test_the_dashboard_groups_all_runs_and_shows_score_curvature_and_cost():
    sent = json.loads(dashboard("curvlab", "someone")._to_model().model_dump_json(by_alias=True))
    section = sent["spec"]["section"]
    names = [key["name"] for key in section["runSets"][0]["grouping"]]
    assert names == ["dataset.value", "model.value", "manifold.value"]
    text = json.dumps(section["panelBankConfig"]["sections"])
    assert all(f'"{word}' in text for word in ("score", "kappa/", "ms per step"))


@pytest.mark.nightly
def test_stored_runs_are_replayed_offline_and_drawn(tmp_path, script, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    folder, picture = str(tmp_path / "wandb_replayed"), tmp_path / "dashboard.png"
    words = folder, "--from", str(STORED), "--picture", str(picture)
    assert "replayed 6 runs" in script("wandb_sync.py", *words).out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(offline_runs(tmp_path)) == 6
    runs, curves = read_offline(tmp_path)
    rows = list(read_rows(STORED.with_suffix(SUFFIX)).values())
    assert sorted(runs["score"]) == sorted(row["score"] for row in rows)
    for row in rows:
        own = curves[curves["run"].str.endswith(row["config_hash"])].dropna(subset="loss")
        kept = pd.read_csv(StringIO(row["files"]["metrics.csv"]))
        assert own["trainer/global_step"].tolist() == kept["step"].tolist()
        assert own["loss"].tolist() == pytest.approx(kept["loss"].tolist())


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
    said = script("wandb_sync.py", str(tmp_path), "--dry-run").out
    assert f"would upload {done}\n" in said
    assert said.endswith("2 finished offline runs\n")

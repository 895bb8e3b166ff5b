"""Stored tasks and optimisers are those of today."""

import json
from pathlib import Path

import pytest

from curvlab.results.identity import built, identity_hash
from curvlab.results.migrations_tasks import migrate_tasks

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
OLD = {
    "optimizer": {
        "_target_": "torch.optim.AdamW", "_partial_": True, "lr": 0.001, "curvature_lr": 0.001,
        "weight_decay": 0.001, "fused": True,
    },
    "task": {
        "name": "kg_completion", "of": "triples", "requires": [], "metric": "mrr",
        "_target_": "curvlab.tasks.kg_completion.KnowledgeGraphCompletion",
        "label_smoothing": 0.1, "inverse_relations": False, "ties": "realistic",
        "scheduler": {
            "_target_": "torch.optim.lr_scheduler.ReduceLROnPlateau", "_partial_": True,
            "mode": "max", "factor": 0.5, "patience": 10,
        },
    },
}  # fmt: skip


def test_a_stored_run_builds_what_todays_does():
    assert built(migrate_tasks({"config": OLD})["config"]) == {
        "optimizer": {
            "_target_": "curvlab.optim.options.AdamW",
            "lr": 0.001,
            "weight_decay": 0.001,
        },
        "task": {
            "_target_": "curvlab.tasks.kg_completion.KnowledgeGraphCompletion",
            "scheduler": {"_target_": "curvlab.optim.options.ReduceOnPlateau"},
        },
    }


@pytest.mark.parametrize("stored", [{}, {"config": None}, {"config": {"task": None}}])
def test_what_is_not_of_this_kind_stays(stored):
    assert migrate_tasks(stored).get("config") == (stored.get("config") or {})


def test_it_changes_no_number_and_is_the_same_twice():
    for path in sorted(RESULTS.rglob("result.json"))[::50]:
        stored = json.loads(path.read_text())
        once = migrate_tasks(stored)
        assert migrate_tasks(once) == once
        assert {k: v for k, v in once.items() if k != "config"} == {
            k: v for k, v in stored.items() if k != "config"
        }
        assert identity_hash(once["config"])
        assert "torch.optim" not in json.dumps(once["config"])

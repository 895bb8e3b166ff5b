"""Stored tasks and optimisers are those of today."""

from curvlab.results.identity import built
from curvlab.results.migrations_tasks import migrate_tasks

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

"""What stored tasks and optimisers are called since their options are in their signatures."""

from typing import Any

OPTIMISERS = ("Adam", "AdamW", "SGD")
PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"


def migrate_tasks(stored: dict[str, Any]) -> dict[str, Any]:
    """The step in which optimisers and schedules became classes of our own.

    They were torch's, as partials, and a task said in `requires` and `of` what its class says now.
    """
    config = {**(stored.get("config") or {})}
    optimizer, task = config.get("optimizer"), config.get("task")
    if isinstance(optimizer, dict):
        module, _, name = str(optimizer.get("_target_")).rpartition(".")
        if module == "torch.optim" and name in OPTIMISERS:
            kept = {key: value for key, value in optimizer.items() if key != "_partial_"}
            config["optimizer"] = {**kept, "_target_": f"curvlab.optim.options.{name}"}
    if isinstance(task, dict):
        task = {key: value for key, value in task.items() if key not in ("requires", "of")}
        scheduler = task.get("scheduler")
        if isinstance(scheduler, dict) and scheduler.get("_target_") == PLATEAU:
            kept = {k: v for k, v in scheduler.items() if k not in ("_partial_", "mode")}
            task["scheduler"] = {**kept, "_target_": "curvlab.optim.options.ReduceOnPlateau"}
        config["task"] = task
    return {**stored, "config": config}

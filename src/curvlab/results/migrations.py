"""What a stored result is called today: one pure function a step of the schema.

A class that is renamed or moved makes no result older. Its old name is written here, a test says
what the step does, and `SCHEMA` is raised.
"""

import re
from collections.abc import Callable
from typing import Any

from curvlab.results.migrations_data import migrate_data
from curvlab.results.migrations_graphs import migrate_graphs
from curvlab.results.migrations_hyps import migrate_hyps
from curvlab.results.migrations_tasks import migrate_tasks

Stored = dict[str, Any]

MOVED_TO_ROOMS = {
    "data.batches": "data.loaders.batches",
    "data.datamodule": "data.loaders.datamodule",
    "data.features": "data.transforms.features",
    "data.filter_images": "data.datasets.filter_images",
    "data.halved_validation": "data.splits.halved_validation",
    "data.hgcn": "data.datasets.hgcn",
    "data.knowledge_graphs": "data.datasets.knowledge_graphs",
    "data.link_splits": "data.splits.links",
    "data.linkx": "data.datasets.linkx",
    "data.mini_imagenet": "data.datasets.mini_imagenet",
    "data.nearest_neighbours": "data.transforms.nearest_neighbours",
    "data.neighbour_batches": "data.loaders.neighbour_batches",
    "data.networks": "data.datasets.networks",
    "data.newsgroups": "data.datasets.newsgroups",
    "data.ogb": "data.datasets.ogb",
    "data.polynomial_tokens": "data.transforms.polynomial_tokens",
    "data.published_splits": "data.splits.published",
    "data.pyg": "data.datasets.pyg",
    "data.random_points": "data.datasets.random_points",
    "data.relations": "data.transforms.relations",
    "data.shortest_paths": "data.transforms.shortest_paths",
    "data.spectrum": "data.transforms.spectrum",
    "data.splits": "data.splits.nodes",
    "data.synthetic": "data.datasets.synthetic",
    "data.synthetic_disease": "data.datasets.synthetic_disease",
    "data.synthetic_large": "data.datasets.synthetic_large",
    "data.synthetic_triples": "data.datasets.synthetic_triples",
    "data.token_batches": "data.loaders.token_batches",
    "data.transforms": "data.transforms.graph",
    "data.triple_batches": "data.loaders.triple_batches",
    "data.triple_folder": "data.datasets.triple_folder",
    "data.wikipedia": "data.datasets.wikipedia",
    "tasks.cost": "tasks.cost.steps",
    "tasks.inference": "tasks.cost.inference",
    "tasks.residual_cost": "tasks.cost.residual",
}
"""Modules below `curvlab`, before and after `data` had rooms and `tasks` a package for costs."""


def with_targets(node: Any, rename: Callable[[str], str]) -> Any:
    """A copy of a nested configuration whose `_target_`s are renamed."""
    if isinstance(node, dict):
        return {
            key: rename(value)
            if key == "_target_" and isinstance(value, str)
            else with_targets(value, rename)
            for key, value in node.items()
        }
    return [with_targets(value, rename) for value in node] if isinstance(node, list) else node


def modules_moved(moved: dict[str, str]) -> Callable[[Stored], Stored]:
    """The step in which modules of curvlab moved."""

    def rename(target: str) -> str:
        found = re.fullmatch(r"curvlab\.(.+)\.(\w+)", target)
        if not found or found[1] not in moved:
            return target
        return f"curvlab.{moved[found[1]]}.{found[2]}"

    return lambda stored: {**stored, "config": with_targets(stored.get("config"), rename)}


HOPS = "curvlab.data.transforms.features.HopFeatures"


def spaces_and_trainers_are_classes(stored: Stored) -> Stored:
    """The step in which balls and spheres, trainers and TokenGT became classes of their own."""
    config = {**(stored.get("config") or {})}
    manifold, model = config.get("manifold") or {}, config.get("model") or {}
    space = {"poincare": "PoincareBall", "sphere": "Sphere"}.get(str(manifold.get("name")))
    if space:
        config["manifold"] = {**manifold, "_target_": f"curvlab.manifolds.{space}"}
    if model.get("name") == "tokengt":
        config["model"] = {**model, "_target_": "curvlab.models.tokengt.TokenGT"}
    transforms = (model.get("requires") or {}).get("transforms") or []
    if model.get("name") in ("fpst", "tokengt") and len(transforms) == 1:  # before there were hops
        both = [*transforms, {"_target_": HOPS, "hops": 0}]
        requires = {**model["requires"], "transforms": both}
        config["model"] = {**config["model"], "requires": requires}
    optimizer = config.get("optimizer")
    task = config.get("task") or {}
    if (
        isinstance(optimizer, dict)
        and task.get("metric")
        and not str(task.get("name")).startswith("filter_regression")
    ):
        # before points of a manifold had a rate of their own, which these models do not have
        points = {"manifold_lr": "lr", "manifold_weight_decay": "weight_decay"}
        own = {name: optimizer.get(same) for name, same in points.items()}
        if optimizer.get("_target_") == "torch.optim.Adam" and "curvature_lr" in optimizer:
            config["optimizer"] = {**own, **optimizer}
    trainer = config.get("trainer")
    if isinstance(trainer, dict):
        kind = "EarlyStopping" if "validate_every" in trainer else "FixedSteps"
        kind = "Passes" if "epochs" in trainer else kind
        config["trainer"] = {"_target_": f"curvlab.run.options.{kind}", **trainer}
    return {**stored, "config": config}


STEPS: tuple[Callable[[Stored], Stored], ...] = (
    modules_moved(MOVED_TO_ROOMS),
    spaces_and_trainers_are_classes,
    migrate_tasks,
    migrate_graphs,
    migrate_hyps,
    migrate_data,
)
"""Step n takes what was stored by schema n to schema n + 1."""

SCHEMA = len(STEPS)
"""What results are written by."""


def migrated(stored: Stored) -> Stored:
    """A stored result as today's schema has it.

    Args:
        stored: a `result.json`, or another mapping with `config` and `schema`; 0 without.
    """
    schema = stored.get("schema", 0)
    if not isinstance(schema, int):
        return stored
    for step in STEPS[schema:]:
        stored = step(stored)
    return {**stored, "schema": SCHEMA}

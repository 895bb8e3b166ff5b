"""Migrations: what an earlier version stored, rewritten as this version would store it.

A stored configuration has the number of its schema. Each rewrite leads to the next number, and
changes names alone, or the revision of a class whose numbers in that run are the same: the run
computed what the new configuration computes. A new rewrite goes to
the end of `REWRITES`; `python scripts/migrate.py` then applies it to the repository's tables.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from curvlab.config.schema import class_name, current_target
from curvlab.results.identity import decisive_parts, identity_hash, map_dicts
from curvlab.results.run_tables import read_rows, write_rows

Config = dict[str, Any]
Revisions = dict[str, int]
Rewrite = Callable[[Config, Revisions], tuple[Config, Revisions]]

OLDEST = 6  # the schema that the first rewrite starts from


class SchemaError(ValueError):
    """A file was stored by a version of curvlab that is too old, or newer."""


def class_names(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Key revisions by the names of classes instead of their places."""
    return config, {class_name(target): revision for target, revision in revisions.items()}


GRAPH_NETWORKS = ("GCN", "GAT", "GraphSAGE", "SGC", "ChebNet", "MLP", "SIGN", "DropEdge")
CURVED_NETWORKS = ("HGCN", "HGAT", "HAT", "HGNN", "QGCN")
AVERAGING = dict.fromkeys(GRAPH_NETWORKS + CURVED_NETWORKS, 2) | {"KappaGCN": 3}
"""The last revisions of the classes whose `skip_average` was on by default."""


def skip_average_stated(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """State `skip_average`, which is off by default since the next revision of these classes."""
    model = config.get("model") or {}
    name = class_name(str(model.get("_target_")))
    if revisions.get(name, 1) != AVERAGING.get(name):
        return config, revisions  # of another class, or outdated before
    stated = {**config, "model": {"skip_average": True, **model}}
    return stated, {**revisions, name: revisions[name] + 1}


def untied_reconstructions(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Give reconstructions from one-hot features the revision whose score averages over ties.

    Such features distinguish all nodes, so that no distances are tied and the score is the same.
    """
    classes = {
        part: class_name(str(node.get("_target_", "")))
        for part, node in (
            ("task", config.get("task") or {}),
            ("features", (config.get("dataset") or {}).get("features") or {}),
        )
    }
    if classes == {"task": "Reconstruction", "features": "IdentityFeatures"}:
        revisions = dict(sorted({**revisions, "Reconstruction": 2}.items()))
    return config, revisions


SIMPLE_EIGENVALUES = {
    **dict.fromkeys(("power", "facebook", "bio_worm", "cora"), 32),
    **dict.fromkeys(("texas", "cornell", "wisconsin"), 183),
    **dict.fromkeys(("citeseer", "tolokers"), 16),
    "coauthor_cs": 11,
    **dict.fromkeys(("actor", "airport", "airport_hgcn", "disease_synthetic"), 8),
}
"""Graphs, and how many of the smallest Laplacian eigenvalues of each component with more than 512
nodes do not repeat; the last is not the next one either. Smaller components had the basis of
revision 2 before.
"""


def simple_eigenvectors(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Give eigenvectors the revision whose basis no solver decides where no eigenvalue repeats.

    Measurements of time and memory depend on no basis.
    """
    timed = class_name(str((config.get("task") or {}).get("_target_", ""))) == "Inference"
    graph = str((config.get("dataset") or {}).get("name")).partition("__")[0]
    transforms = ((config.get("model") or {}).get("requires") or {}).get("transforms") or []
    for transform in transforms:
        name = class_name(str(transform.get("_target_")))
        if name == "LaplacianEigenvectors":
            count = transform.get("k", 32)
        elif name == "EigenvectorFeatures":
            count = transform.get("count", 15) + 1
        else:
            continue
        if timed or count <= SIMPLE_EIGENVALUES.get(graph, 0):
            revisions = {**revisions, name: 2}
    return config, dict(sorted(revisions.items()))


REWRITES: tuple[Rewrite, ...] = (
    class_names,
    skip_average_stated,
    untied_reconstructions,
    simple_eigenvectors,
)

SCHEMA = OLDEST + len(REWRITES)  # of what this version stores


def migrated(stored: Any) -> Any:
    """A result, or the facts of a checkpoint, as this version would have stored it.

    Raises:
        SchemaError: no rewrites start from its schema.
    """
    schema = stored.get("schema", SCHEMA) if isinstance(stored, dict) else SCHEMA
    if schema == SCHEMA:
        return stored
    if schema not in range(OLDEST, SCHEMA):
        raise SchemaError(
            f"it is of schema {schema}, and curvlab reads schemas {OLDEST} to {SCHEMA}"
        )
    config, revisions = deepcopy(stored["config"]), dict(stored.get("revisions") or {})
    for rewrite in REWRITES[schema - OLDEST :]:
        config, revisions = rewrite(config, revisions)
    config = with_current_targets(config)
    new = {**stored, "config": config, "revisions": revisions, "schema": SCHEMA}
    if "config_hash" in stored:
        new["config_hash"] = identity_hash(decisive_parts(config), revisions)
    return new


def migrate_table(table: Path) -> int:
    """Rewrite the rows of a table of runs that are of an earlier schema; return their number."""
    rows = read_rows(table)
    outdated = [run for run, row in rows.items() if row.get("schema", SCHEMA) != SCHEMA]
    if outdated:
        write_rows(table, map(migrated, rows.values()))
    return len(outdated)


def with_current_targets(config: Config) -> Config:
    """Copy a configuration and name each class of this package by the place it has today."""

    def rename(node: Mapping[str, Any]) -> dict[str, Any]:
        target = node.get("_target_")
        return {**node, "_target_": current_target(target)} if isinstance(target, str) else {**node}

    return dict(map_dicts(config, rename))

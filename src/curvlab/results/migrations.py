"""Migrations of results and checkpoints of earlier versions to the current schema.

A stored configuration has the number of its schema, and each rewrite leads to the next number. A
rewrite only changes names, or the revision of a class whose numbers in that run are unchanged, so
that the new configuration computes what the run computed. A new rewrite goes to the end of
`REWRITES`; `python scripts/migrate.py` then applies it to the repository's tables.
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

OLDEST = 6  # the schema before the first rewrite


class SchemaError(ValueError):
    """A file was stored by a version of curvlab that is too old, or newer."""


def class_names(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Key revisions by the names of classes instead of their places."""
    return config, {class_name(target): revision for target, revision in revisions.items()}


GRAPH_NETWORKS = ("GCN", "GAT", "GraphSAGE", "SGC", "ChebNet", "MLP", "SIGN", "DropEdge")
CURVED_NETWORKS = ("HGCN", "HGAT", "HAT", "HGNN", "QGCN")
AVERAGING = dict.fromkeys(GRAPH_NETWORKS + CURVED_NETWORKS, 2) | {"KappaGCN": 3}
"""The last revisions of the classes whose `skip_average` was on by default."""


def state_skip_average(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """State `skip_average`, which is off by default since the next revision of these classes."""
    model = config.get("model") or {}
    name = class_name(str(model.get("_target_")))
    if revisions.get(name, 1) != AVERAGING.get(name):
        return config, revisions  # another class, or outdated already
    new_config = {**config, "model": {"skip_average": True, **model}}
    return new_config, {**revisions, name: revisions[name] + 1}


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


WITH_SELF_LOOPS = ("HyboNet", "LRN", "Hypformer")
"""Classes whose option `self_loops` was a requirement."""

REQUIRED = {
    **dict.fromkeys(("HyboNet", "LRN", "SGC", "GraphSAGE"), "SparseAdjacency"),
    **dict.fromkeys((*CURVED_NETWORKS, "KappaGCN"), "SparseAdjacency"),
    **dict.fromkeys(("Hypformer", "BernNet", "ChebNetII", "GPRGNN"), "NormalisedAdjacency"),
    **dict.fromkeys(("IDGL", "SGFormer", "LRNSGFormer"), "NormalisedAdjacency"),
    "NodeFormer": "NeighbourRelations",
    "Graphormer": "ShortestPaths",
    **dict.fromkeys(("FPST", "TokenGT"), "LaplacianEigenvectors"),
}
"""The transform that each of these classes names; configurations used to name it, too."""

OPTION_OF_MODEL = {"orders": "orders", "longest": "longest_path", "k": "eigenvectors"}
WITHOUT_SELF_LOOPS = (
    "SGC",
    "GraphSAGE",
    "BernNet",
    "ChebNetII",
)  # their adjacencies have no self-loops


def transforms_of_classes(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Leave out transforms that the model's class names, and make `self_loops` its option."""
    model = dict(config.get("model") or {})
    requirements = dict(model.pop("requires", None) or {})
    if not requirements:
        return config, revisions
    requirements.pop("self_loops", None)
    name = class_name(str(model.get("_target_")))
    rest = []
    for transform in requirements.pop("transforms", None) or []:
        is_required = class_name(str(transform.get("_target_"))) == REQUIRED.get(name)
        if is_required and name in WITH_SELF_LOOPS:
            model["self_loops"] = transform["self_loops"]
        elif not is_required or not _has_the_models_options(transform, name, model):
            rest.append(transform)
    if rest:
        requirements["transforms"] = rest
    if requirements:
        model["requires"] = requirements
    return {**config, "model": model}, revisions


def _has_the_models_options(transform: Config, name: str, model: Config) -> bool:
    options = {key: value for key, value in transform.items() if key != "_target_"}
    if "self_loops" in options:
        return options == {"self_loops": name not in WITHOUT_SELF_LOOPS}
    return all(model[OPTION_OF_MODEL[key]] == value for key, value in options.items())


EIGENVECTORS = {"FPST": 4, "TokenGT": 3}
"""First revisions of these classes whose basis of eigenvectors does not depend on the solver."""

SIMPLE_EIGENVALUES = {
    **dict.fromkeys(("power", "facebook", "bio_worm", "cora"), 32),
    **dict.fromkeys(("texas", "cornell", "wisconsin"), 183),
    **dict.fromkeys(("citeseer", "tolokers"), 16),
    "coauthor_cs": 11,
    **dict.fromkeys(("actor", "airport", "airport_hgcn", "disease_synthetic"), 8),
}
"""Number of smallest Laplacian eigenvalues, by graph, that are simple in all large components.

Large components have more than 512 nodes; smaller ones always had today's basis. The last of these
eigenvalues also differs from the next one.
"""


def simple_eigenvectors(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Raise the revision of models whose basis of eigenvectors did not depend on the solver.

    Measurements of time and memory do not depend on a basis.
    """
    timed = class_name(str((config.get("task") or {}).get("_target_", ""))) == "Inference"
    graph = str((config.get("dataset") or {}).get("name")).partition("__")[0]
    simple = SIMPLE_EIGENVALUES.get(graph, 0)
    model = config.get("model") or {}
    name = class_name(str(model.get("_target_")))
    is_latest = revisions.get(name, 1) == EIGENVECTORS.get(name, 1) - 1
    if is_latest and (timed or model.get("eigenvectors", 32) <= simple):
        revisions = {**revisions, name: EIGENVECTORS[name]}
    for transform in (model.get("requires") or {}).get("transforms") or []:
        appended = class_name(str(transform.get("_target_"))) == "EigenvectorFeatures"
        if appended and (timed or transform.get("count", 15) + 1 <= simple):
            revisions = {**revisions, "EigenvectorFeatures": 2}
    return config, dict(sorted(revisions.items()))


OF_TRANSFORMS = {
    "HopFeatures": {"hops": "hops"},
    "StackedHops": {"hops": "hops"},
    "EigenvectorFeatures": {"count": "eigenvectors"},
    "LaplacianSpectrum": {"smallest": "smallest", "largest": "largest"},
    "PolynomialTokens": {"dtype": "token_dtype"},
    "HalvedValidation": {},
}
"""Options of transforms that configurations named, and the model's options that replace them."""

OF_EIGENVECTORS = {"EigenvectorFeatures": 2, "LaplacianSpectrum": 2}
"""First revisions of transforms whose basis does not depend on the solver."""


def options_of_models(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Replace `model.requires` by options of the model."""
    model = dict(config.get("model") or {})
    requirements = model.pop("requires", None)
    if requirements is None:
        return config, revisions
    name = class_name(str(model.get("_target_")))
    revisions = dict(revisions)
    unknown = []
    for transform in requirements.get("transforms") or []:
        kind = class_name(str(transform.get("_target_")))
        if kind not in OF_TRANSFORMS:  # unknown transforms are refused when they are read
            unknown.append(transform)
            continue
        options = {new: transform[old] for old, new in OF_TRANSFORMS[kind].items()}
        model |= options
        if kind == "PolynomialTokens":
            is_default = transform["self_loops"] == (transform["basis"] == "mono")
            model["self_loops"] = None if is_default else transform["self_loops"]
        if kind in OF_EIGENVECTORS:
            is_latest = revisions.pop(kind, 1) == OF_EIGENVECTORS[kind]
            if (is_latest or options.get("eigenvectors") == 0) and revisions.get(name) == 2:
                revisions[name] = 3
    if unknown:
        model["requires"] = {"transforms": unknown}
    return {**config, "model": model}, revisions


def raw_inputs(inputs: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Sizes of a model's inputs without the columns that its class adds to them."""
    model = config["model"]
    name = class_name(str(model.get("_target_")))
    inputs = dict(inputs)
    if name == "SIGN":
        inputs["in_channels"] //= model["hops"] + 1
    if name == "NAGphormer":
        inputs["in_channels"] -= model["eigenvectors"]
    return inputs


REWRITES: tuple[Rewrite, ...] = (
    class_names,
    state_skip_average,
    untied_reconstructions,
    transforms_of_classes,
    simple_eigenvectors,
    options_of_models,
)

SCHEMA = OLDEST + len(REWRITES)  # of what this version stores


def migrated(stored: Any) -> Any:
    """A result, or the facts of a checkpoint, in the current schema.

    Raises:
        SchemaError: its schema is too old, or newer than the current one.
    """
    schema = stored.get("schema", SCHEMA) if isinstance(stored, dict) else SCHEMA
    if schema == SCHEMA:
        return stored
    if schema not in range(OLDEST, SCHEMA):
        raise SchemaError(
            f"it is of schema {schema}, and curvlab reads schemas {OLDEST} to {SCHEMA}"
        )
    config = deepcopy(stored["config"])
    revisions = dict(stored.get("revisions") or {})
    for rewrite in REWRITES[schema - OLDEST :]:
        config, revisions = rewrite(config, revisions)
    config = with_current_targets(config)
    new = {**stored, "config": config, "revisions": revisions, "schema": SCHEMA}
    if "facts" in stored and schema <= OLDEST + REWRITES.index(options_of_models):
        facts = stored["facts"]
        new["facts"] = {**facts, "inputs": raw_inputs(facts["inputs"], config)}
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
    """Copy a configuration with the current dotted names of this package's classes."""

    def rename(node: Mapping[str, Any]) -> dict[str, Any]:
        target = node.get("_target_")
        if isinstance(target, str):
            return {**node, "_target_": current_target(target)}
        return {**node}

    return dict(map_dicts(config, rename))

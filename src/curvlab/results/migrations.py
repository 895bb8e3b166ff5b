"""Migrations rewrite what an earlier version stored as this version would store it.

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


LOOPED = ("HyboNet", "LRN", "Hypformer")
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
"""The transform that each of these classes names itself; configurations had named it, too."""

OPTION_OF_MODEL = {"orders": "orders", "longest": "longest_path", "k": "eigenvectors"}
BARE = ("SGC", "GraphSAGE", "BernNet", "ChebNetII")  # their adjacencies have no self-loops


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
        if is_required and name in LOOPED:
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
        return options == {"self_loops": name not in BARE}
    return all(model[OPTION_OF_MODEL[key]] == value for key, value in options.items())


EIGENVECTORS = {"FPST": 4, "TokenGT": 3}
"""The revisions of these classes since which no solver decides the basis of their eigenvectors."""

SIMPLE_EIGENVALUES = {
    **dict.fromkeys(("power", "facebook", "bio_worm", "cora"), 32),
    **dict.fromkeys(("texas", "cornell", "wisconsin"), 183),
    **dict.fromkeys(("citeseer", "tolokers"), 16),
    "coauthor_cs": 11,
    **dict.fromkeys(("actor", "airport", "airport_hgcn", "disease_synthetic"), 8),
}
"""Graphs, and how many of the smallest Laplacian eigenvalues of each component with more than 512
nodes do not repeat; the last is not the next one either. Smaller components had the basis of
today before.
"""


def simple_eigenvectors(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Raise the revision of models whose eigenvectors had a basis that no solver decided.

    Measurements of time and memory depend on no basis.
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
"""Transforms, and the revision since which no solver decides their basis; their models have it."""


def options_of_models(config: Config, revisions: Revisions) -> tuple[Config, Revisions]:
    """Make options of the model of what `model.requires` said about its graph."""
    model = dict(config.get("model") or {})
    requirements = model.pop("requires", None)
    if requirements is None:
        return config, revisions
    name = class_name(str(model.get("_target_")))
    revisions = dict(revisions)
    unknown = []
    for transform in requirements.get("transforms") or []:
        kind = class_name(str(transform.get("_target_")))
        if kind not in OF_TRANSFORMS:  # a stranger's: it is refused where it is read
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
    """Sizes of a model's inputs, where the columns that its class adds to them were counted."""
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
    skip_average_stated,
    untied_reconstructions,
    transforms_of_classes,
    simple_eigenvectors,
    options_of_models,
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
    """Copy a configuration and name each class of this package by the place it has today."""

    def rename(node: Mapping[str, Any]) -> dict[str, Any]:
        target = node.get("_target_")
        return {**node, "_target_": current_target(target)} if isinstance(target, str) else {**node}

    return dict(map_dicts(config, rename))

"""The step in which data sets shed what their run passes and what their classes know."""

from typing import Any

Stored = dict[str, Any]

EDGE_LISTS = "curvlab.data.datasets.networks.EdgeListNetwork"


def migrate_data(stored: Stored) -> Stored:
    """Sources have no name, edge lists have files and statistics, HGCN's split no fractions.

    Args:
        stored: a result, with `config`; not changed.
    """
    config = {**(stored.get("config") or {})}
    dataset, split = config.get("dataset"), config.get("split")
    if isinstance(dataset, dict) and isinstance(dataset.get("source"), dict):
        source = {k: v for k, v in dataset["source"].items() if k != "name"}
        if source.get("_target_") == EDGE_LISTS and "path" in source:
            source = _with_files(source)
        config["dataset"] = {**dataset, "source": source}
    if isinstance(split, dict):
        config["split"] = {k: v for k, v in split.items() if k != "fractions"}
    return {**stored, "config": config}


def _with_files(source: Stored) -> Stored:
    """An edge list's source in the form of others: a folder, files below an address, statistics."""
    url, *parts = str(source["url"]).rsplit("/", 2)
    return {
        "_target_": source["_target_"],
        "folder": source["path"].rpartition("/")[0],
        "files": [{"path": "/".join(parts), "sha256": source["sha256"]}],
        "url": url,
        "statistics": {key: source[key] for key in ("num_nodes", "num_edges", "max_degree")},
    }

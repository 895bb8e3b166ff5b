"""Weights of a model's branches: by query, and as a table by relation."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from curvlab.analysis.arrays import load_arrays, save_arrays

FILE = "routing.npz"
TABLE = "routing.csv"


@dataclass(frozen=True)
class Routing:
    """Weights of a model's branches for queries of a knowledge graph."""

    weights: np.ndarray  # `[queries, branches]`
    relation: np.ndarray  # index in `relations` of each query's relation
    branches: list[str]
    relations: list[str]


def save_routing(path: Path, parts: dict[str, Routing]) -> None:
    """Write the routing of several parts of a graph, such as `train` and `test`."""
    first = next(iter(parts.values()))
    arrays = {
        "branches": np.array(first.branches),
        "relations": np.array(first.relations),
    }
    for name, routing in parts.items():
        arrays[f"{name}_weights"] = routing.weights.astype(np.float32)
        arrays[f"{name}_relation"] = routing.relation
    save_arrays(path, arrays)


def load_routing(path: Path, part: str) -> Routing:
    """Read the routing of a part, or refuse a file without this part."""
    weights = f"{part}_weights"
    relation = f"{part}_relation"
    names = {weights, relation, "branches", "relations"}
    origin = "only models with a router have it, such as cat, on triples"
    arrays = load_arrays(path, f"routing of the {part} part", origin, names)
    branches = arrays["branches"].tolist()
    relations = arrays["relations"].tolist()
    return Routing(arrays[weights], arrays[relation], branches, relations)


def routing_table(routing: Routing) -> pd.DataFrame:
    """Mean weights of all queries, and of each relation's queries, most queries first.

    The columns of a branch are its mean weight and `BRANCH_first`, the share of queries for which
    the branch has the largest weight.
    """
    weights = routing.weights.astype(float)
    frame = pd.DataFrame(weights, columns=routing.branches)
    for i, name in enumerate(routing.branches):
        frame[f"{name}_first"] = weights.argmax(1) == i
    frame["entropy"] = -(weights * np.log(np.clip(weights, 1e-12, None))).sum(1)
    total = frame.mean().to_frame().T.assign(relation="all", queries=len(frame))
    names = np.array(routing.relations, dtype=object)[routing.relation]
    groups = frame.groupby(names)
    table = groups.mean().assign(queries=groups.size())
    table = table.rename_axis("relation").reset_index()
    table = table.sort_values(["queries", "relation"], ascending=[False, True])
    columns = ["relation", "queries", *frame.columns]
    return pd.concat([total, table])[columns].reset_index(drop=True)

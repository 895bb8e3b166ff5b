"""Which runs of a cell may be averaged: those with the same configuration but for the seed."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from curvlab.results.identity import canonical

CELL = ["row", "column"]


def one_protocol_per_cell(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Keep, in each cell, the runs of one protocol, and of those one run a seed.

    The protocol with the most seeds is kept, then that with the most steps. Runs that diverged
    count as seeds here: a choice that looked at outcomes would prefer protocols that hide them.

    Args:
        runs: As `collect` returns them.

    Returns:
        The runs kept, and one row (`row`, `column`, `runs`, `reason`) for each set left out.
    """
    kept, left_out = [], []
    for (row, column), cell in runs.groupby(CELL, sort=False):
        chosen, others = _choose(cell)
        unique = chosen.sort_values("steps").drop_duplicates("seed", keep="last").sort_index()
        kept.append(unique)
        if len(unique) < len(chosen):
            others.append((len(chosen) - len(unique), "a seed that is there already"))
        left_out += [(row, column, count, reason) for count, reason in others]
    return (
        pd.concat(kept) if kept else runs,
        pd.DataFrame(left_out, columns=[*CELL, "runs", "reason"]),
    )


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots; lists become JSON text."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = json.dumps(value) if isinstance(value, list) else value
    return flat


def protocols(built: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each run's protocol: what it built, flattened, without what changes from seed to seed.

    Left out are keys named after the seed whose value is the run's seed in all the runs
    (`dataset.noise_seed`).

    Args:
        built: what the runs of one cell built, see `curvlab.results.identity.built`.
    """
    flat = [flatten(made) for made in built]
    keys = set().union(*flat)
    left_out = {
        key
        for key in keys
        if key.endswith("seed") and all(config.get(key) == config.get("seed") for config in flat)
    }
    return [{k: v for k, v in config.items() if k not in left_out} for config in flat]


def _choose(cell: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """The runs of the chosen protocol; number and reason of the runs of each other one."""
    found = protocols(cell["built"])
    texts = pd.Series([canonical(p) for p in found], cell.index)
    groups = [group for _, group in cell.groupby(texts, sort=False)]
    groups.sort(key=lambda group: (group["seed"].nunique(), group["steps"].max()), reverse=True)
    position = {label: i for i, label in enumerate(cell.index)}
    kept = position[groups[0].index[0]]

    def difference(group: pd.DataFrame) -> str:
        other = position[group.index[0]]
        keys = found[other].keys() | found[kept].keys()
        whole = {i: flatten(cell["config"].iloc[i]) for i in (other, kept)}  # defaults too
        pair = ({k: whole[i].get(k, found[i].get(k)) for k in keys} for i in (other, kept))
        return describe_difference(*pair)

    return groups[0], [(len(group), difference(group)) for group in groups[1:]]


def describe_difference(other: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    """In words, where one protocol differs from another; the first three keys."""
    absent = "nothing"
    keys = [
        key
        for key in sorted(other.keys() | kept.keys())
        if other.get(key, absent) != kept.get(key, absent)
    ]
    words = [f"{key} {other.get(key, absent)} instead of {kept.get(key, absent)}" for key in keys]
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return ", ".join(words[:3]) + more

"""The split of a run, and runs that share one."""

from collections.abc import Mapping
from typing import Any

from curvlab.statistics import Draw

CYCLE = "split.cycle"  # the option by which seeds share splits


def split_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The split that a run uses: the task's split of edges, or the dataset's split of nodes."""
    of_edges = (config.get("task") or {}).get("split") or {}
    if {"val", "test"} <= of_edges.keys():  # the split of nodes is not used
        return of_edges
    return config.get("split") or {}


def drawn(config: Mapping[str, Any], seed: int) -> Draw:
    """The seed and the split that it draws: the same number, or by `split.cycle` its remainder.

    Runs on one split for all seeds count by the seed, as independent initialisations.
    """
    cycle = split_of(config).get("cycle")
    return Draw(seed, seed % cycle if cycle else seed)

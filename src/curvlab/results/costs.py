"""What steps cost, from stored runs: one small file beside the tables of runs."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from curvlab.files import arriving

FILE = "costs.csv"
START = 5.0
"""Seconds of a run before its first step and after its last."""

COLUMNS = ("model", "dataset", "task", "table", "ms", "steps")
Kind = tuple[str, str, str]
"""Names of a run's model, data set and task."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a step, evaluations included, and the steps of a run that ended early."""

    kind: Kind
    table: str
    ms: float
    steps: int | None = None

    def seconds(self, max_steps: int) -> float:
        """The time of a run of at most `max_steps` steps."""
        steps = max_steps if self.steps is None else min(self.steps, max_steps)
        return START + self.ms * steps / 1e3


def cost_of(run: Mapping[str, Any]) -> Cost | None:
    """The cost of a stored run; None where it does not say."""
    steps, wall = int(run["steps"]), float(run["wall_seconds"] or 0)
    of_wall = 1e3 * max(0.0, wall - START) / max(1, steps)
    ms = max(of_wall, float(run["ms_per_step"] or 0))
    if not ms:
        return None
    limit = (run["config"].get("trainer") or {}).get("max_steps")
    early = limit is not None and steps < limit
    kind = run["model"], run["config"]["dataset"]["name"], run["task"]
    return Cost(kind, run["experiment"] or "", ms, steps if early else None)


def summarise(costs: Iterable[Cost]) -> Iterator[Cost]:
    """One cost for each kind of run in each table: the medians."""

    def key(cost: Cost) -> tuple[Kind, str]:
        return cost.kind, cost.table

    for (kind, table), group in groupby(sorted(costs, key=key), key):
        some = list(group)
        early = [cost.steps for cost in some if cost.steps is not None]
        steps = int(median(early)) if 2 * len(early) > len(some) else None
        yield Cost(kind, table, float(f"{median(cost.ms for cost in some):.4g}"), steps)


def read_costs(path: Path) -> list[Cost]:
    """Read the file; empty without one."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Cost(
                (row["model"], row["dataset"], row["task"]),
                row["table"],
                float(row["ms"]),
                int(row["steps"]) if row["steps"] else None,
            )
            for row in csv.DictReader(file)
        ]


def write_costs(path: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Write the costs of runs on a CPU that have ended."""
    costs = (cost_of(run) for run in runs if run["device"] == "cpu")
    rows = [
        (*cost.kind, cost.table, f"{cost.ms:g}", "" if cost.steps is None else cost.steps)
        for cost in summarise(cost for cost in costs if cost is not None)
    ]
    with arriving(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])

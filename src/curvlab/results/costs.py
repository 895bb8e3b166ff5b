"""Costs of training steps, measured by stored runs and kept in one small file."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from curvlab.config.schema import MISSING, options_of
from curvlab.config.validation import mappings
from curvlab.files import atomic_path
from curvlab.results.identity import are_equal

FILE = "costs.csv"
START = 5.0
"""Seconds of a run before its first step and after its last step."""

FEWEST_STEPS = 20
"""Fewest steps of a run that show the cost of a step; the first steps include preparations."""

EVALUATIONS = 3.0
"""Largest ratio of a step with evaluations to one without, for a short run."""

STEPS = "trainer.max_steps"
SIZED = ("model", "batching", "task")
"""Parts of a configuration whose whole numbers and choices determine the cost of a step."""

FARTHEST = 10.0
"""Largest ratio of two numbers of an option for which the costs of runs are compared."""

COLUMNS = ("model", "dataset", "task", "table", "ms", "steps", "settings")
Kind = tuple[str, str, str]
"""Names of a run's model, data set and task."""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a step, evaluations included, and the steps of a run that ended early.

    `settings` is a result of `settings_of`.
    """

    kind: Kind
    table: str
    ms: float
    steps: int | None = None
    settings: str = ""

    def seconds(self, max_steps: int) -> float:
        """The time of a run of at most `max_steps` steps."""
        steps = max_steps if self.steps is None else min(self.steps, max_steps)
        return START + self.ms * steps / 1e3


def cost_of(run: Mapping[str, Any]) -> Cost | None:
    """Cost of a stored run; None if it has no timing or was too short."""
    steps = int(run["steps"])
    wall = float(run["wall_seconds"] or 0)
    ms = float(run["ms_per_step"] or 0)
    of_wall = 1e3 * max(0.0, wall - START) / max(1, steps)
    if ms * steps < 1e3 * START and ms:  # most of the other time is start and pictures
        of_wall = min(of_wall, EVALUATIONS * ms)
    ms = max(ms, of_wall)
    config = run["config"]
    limit = (config.get("trainer") or {}).get("max_steps")
    early = limit is not None and steps < limit
    if not ms or (early and steps < FEWEST_STEPS):
        return None
    kind = run["model"], config["dataset"]["name"], run["task"]
    table = run["experiment"] or ""
    settings = settings_of(config)
    return Cost(kind, table, ms, steps if early else None, settings)


def settings_of(config: Mapping[str, Any]) -> str:
    """Non-default settings of a stored configuration that determine the cost of a step.

    These are the whole numbers and choices of `SIZED`, as in `model.dim=512 model.layers=2`, and
    the number of steps of a run that is too short to show the cost of a step.
    """
    steps = int((config.get("trainer") or {}).get("max_steps") or FEWEST_STEPS)
    settings = [f"{STEPS}={steps}"] if steps < FEWEST_STEPS else []
    for part in SIZED:
        for path, node in mappings(config.get(part) or {}, part):
            options = options_of(str(node.get("_target_", "")))
            for name, value in node.items():
                option = options.get(name)
                if not isinstance(value, int | str) or option is None or option.incidental:
                    continue
                if not are_equal(value, option.default):
                    settings.append(f"{path}.{name}={value}")
    return " ".join(sorted(settings))


def is_comparable(config: Mapping[str, Any], settings: str) -> bool:
    """Whether the cost of a run with `settings` applies roughly to a configuration."""
    planned = _parse(settings_of(config))
    stored = _parse(settings)
    if STEPS not in stored:  # the cost of a long run also applies to a short one
        planned.pop(STEPS, None)
    for key in planned.keys() | stored.keys():
        first = planned.get(key) or _default(config, key)
        second = stored.get(key) or _default(config, key)
        if first.isdigit() and second.isdigit():
            smallest, largest = sorted((int(first), int(second)))
            if largest > FARTHEST * smallest:
                return False
        elif first != second and not key.startswith("model."):
            return False  # another loss, other samples
    return True


def _parse(settings: str) -> dict[str, str]:
    pairs = (setting.partition("=") for setting in settings.split(" ") if setting)
    return {key: value for key, _, value in pairs}


def _default(config: Mapping[str, Any], key: str) -> str:
    """The default of an option of a configuration, as a text; empty without a default."""
    *path, name = key.split(".")
    node: Any = config
    for part in path:
        node = node.get(part) if isinstance(node, Mapping) else None
    target = str(node.get("_target_", "")) if isinstance(node, Mapping) else ""
    option = options_of(target).get(name)
    return "" if option is None or option.default is MISSING else str(option.default)


def summarise(costs: Iterable[Cost]) -> Iterator[Cost]:
    """Median costs of the runs with equal settings, for each table."""

    def key(cost: Cost) -> tuple[Kind, str, str]:
        return cost.kind, cost.table, cost.settings

    for (kind, table, settings), group in groupby(sorted(costs, key=key), key):
        runs = list(group)
        early = [cost.steps for cost in runs if cost.steps is not None]
        steps = int(median(early)) if 2 * len(early) > len(runs) else None
        ms = float(f"{median(cost.ms for cost in runs):.4g}")
        yield Cost(kind, table, ms, steps, settings)


def read_costs(path: Path) -> list[Cost]:
    """Read the costs of a file; empty without the file."""
    if not path.is_file():
        return []
    costs = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kind = row["model"], row["dataset"], row["task"]
            steps = int(row["steps"]) if row["steps"] else None
            costs.append(Cost(kind, row["table"], float(row["ms"]), steps, row["settings"]))
    return costs


def write_costs(path: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Write the costs of finished runs on CPU."""
    costs = (cost_of(run) for run in runs if run["device"] == "cpu")
    rows = []
    for cost in summarise(cost for cost in costs if cost is not None):
        steps = "" if cost.steps is None else cost.steps
        rows.append((*cost.kind, cost.table, f"{cost.ms:g}", steps, cost.settings))
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])

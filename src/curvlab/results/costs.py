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
from curvlab.files import arriving
from curvlab.results.identity import same

FILE = "costs.csv"
START = 5.0
"""Seconds of a run before its first step and after its last."""

FEWEST = 20
"""Steps from which a run shows what a step costs; the first ones prepare what later ones use."""

EVALUATIONS = 3.0
"""Largest ratio of a step with evaluations to one without, of a run that trained shortly."""

STEPS = "trainer.max_steps"
SIZED = ("model", "batching", "task")
"""Parts of a configuration whose whole numbers and choices decide what a step costs."""

FARTHEST = 10.0
"""Ratio of two whole numbers of an option from which the costs of two runs are not compared."""

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
    """Cost of a stored run; None if it has no timing or was too short to measure one."""
    steps, wall = int(run["steps"]), float(run["wall_seconds"] or 0)
    ms = float(run["ms_per_step"] or 0)
    of_wall = 1e3 * max(0.0, wall - START) / max(1, steps)
    if ms * steps < 1e3 * START and ms:  # most of the rest is no evaluation, but start and pictures
        of_wall = min(of_wall, EVALUATIONS * ms)
    ms = max(ms, of_wall)
    config = run["config"]
    limit = (config.get("trainer") or {}).get("max_steps")
    early = limit is not None and steps < limit
    if not ms or (early and steps < FEWEST):
        return None
    kind = run["model"], config["dataset"]["name"], run["task"]
    table, settings = run["experiment"] or "", settings_of(config)
    return Cost(kind, table, ms, steps if early else None, settings)


def settings_of(config: Mapping[str, Any]) -> str:
    """Non-default settings of a stored configuration that determine the cost of a step.

    These are the whole numbers and the choices of `SIZED`, as `model.dim=512 model.layers=2`, and
    the steps of a run that is too short to show what one of a longer run costs.
    """
    steps = int((config.get("trainer") or {}).get("max_steps") or FEWEST)
    found = [f"{STEPS}={steps}"] if steps < FEWEST else []
    for part in SIZED:
        for path, node in mappings(config.get(part) or {}, part):
            options = options_of(str(node.get("_target_", "")))
            for name, value in node.items():
                option = options.get(name)
                if not isinstance(value, int | str) or option is None or option.incidental:
                    continue
                if not same(value, option.default):
                    found.append(f"{path}.{name}={value}")
    return " ".join(sorted(found))


def is_comparable(config: Mapping[str, Any], settings: str) -> bool:
    """Whether a run with other settings costs about as much as a configuration."""
    planned, stored = (_parse(text) for text in (settings_of(config), settings))
    if STEPS not in stored:  # a long run also tells the time of a short one
        planned.pop(STEPS, None)
    for key in planned.keys() | stored.keys():
        one, other = (values.get(key) or _default(config, key) for values in (planned, stored))
        if one.isdigit() and other.isdigit():
            least, largest = sorted((int(one), int(other)))
            if largest > FARTHEST * least:
                return False
        elif one != other and not key.startswith("model."):
            return False  # another loss, other samples
    return True


def _parse(settings: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in settings.split(" ") if each)
    return {key: value for key, _, value in pairs}


def _default(config: Mapping[str, Any], key: str) -> str:
    """The default of an option that a configuration has, as a text; empty without one."""
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
        some = list(group)
        early = [cost.steps for cost in some if cost.steps is not None]
        steps = int(median(early)) if 2 * len(early) > len(some) else None
        ms = float(f"{median(cost.ms for cost in some):.4g}")
        yield Cost(kind, table, ms, steps, settings)


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
                row["settings"],
            )
            for row in csv.DictReader(file)
        ]


def write_costs(path: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Write the costs of runs on a CPU that have ended."""
    costs = (cost_of(run) for run in runs if run["device"] == "cpu")
    rows = [
        (
            *(*cost.kind, cost.table, f"{cost.ms:g}"),
            *("" if cost.steps is None else cost.steps, cost.settings),
        )
        for cost in summarise(cost for cost in costs if cost is not None)
    ]
    with arriving(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *rows])

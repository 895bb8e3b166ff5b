"""How many runs a command starts and how long they take, from the costs of stored runs.

Nothing is built, and only one run is composed, so that the answer takes less than a second.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from hydra.core.override_parser.types import Glob, Override, ValueType
from omegaconf import DictConfig

from curvlab.cli.overrides import parsed, spelt_out, swept_by_table, variations
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, REPOSITORY, choices
from curvlab.config.options import decides
from curvlab.config.resolvers import run_name
from curvlab.program import in_time
from curvlab.results.identity import identity_hash, stored
from curvlab.results.result import CONCLUSIVE, load, result_files
from curvlab.results.run_tables import SUFFIX, folder_of, read_rows
from curvlab.study.flat_counterpart import overrides_of_runs, spaces_of

LONG = 3600.0
"""Seconds from which the forecast says how to run less."""

STEPS = "trainer.max_steps"

Cell = Mapping[str, Any]
"""Values of one run by the keys that the command line and the table set."""


USED = {
    "task", "model", "dataset", "experiment", "status", "config", "config_hash", "steps",
    "wall_seconds", "ms_per_step",
}  # fmt: skip
"""Fields of a result that are read here; a file without one of them is no result."""


@dataclass(frozen=True)
class Stored:
    """A stored run and what it cost."""

    folder: Path
    result: Mapping[str, Any]
    own: bool

    @property
    def config(self) -> Mapping[str, Any]:
        """The run's configuration."""
        return self.result["config"]

    @property
    def cost(self) -> float:
        """Seconds per step, with evaluations and start; 0 if not known.

        Of a run that was interrupted it has only the time since.
        """
        wall = float(self.result["wall_seconds"] or 0) / max(1, self.result["steps"])
        return max(wall, float(self.result["ms_per_step"] or 0) / 1e3)

    @property
    def kind(self) -> tuple[str, ...]:
        """Task, model and data set."""
        return tuple(str(self.result[name]) for name in ("task", "model", "dataset"))

    def has(self, key: str, value: Any) -> bool:
        """Whether the run has a value of a key, or was built with a choice of a group."""
        node: Any = self.config
        for name in key.lstrip("+").split("."):
            node = node.get(name) if isinstance(node, Mapping) else None
        return bool((node.get("name") if isinstance(node, Mapping) else node) == value)

    def is_done(self, config_hash: str | None = None) -> bool:
        """Whether the run is not repeated, and is of an identity."""
        same = config_hash in (None, self.result["config_hash"])
        return same and self.result["status"] in CONCLUSIVE

    def seconds(self, most: int | None) -> float:
        """Time of a run like this one of at most `most` steps; None: of as many as this one's."""
        taken, limit = int(self.result["steps"]), self.config["trainer"]["max_steps"]
        steps = taken if most is None else min(taken, most) if taken < limit else most
        return self.cost * steps


@dataclass(frozen=True)
class Forecast:
    """Runs that a command starts and their time.

    Attributes:
        runs: all runs of the command.
        finished: those with a result; None where only the runs themselves look.
        seconds: estimated time of the others, as far as there are stored runs like them.
        unknown: runs without a stored run like them.
        basis: stored runs that the estimate uses, in words.
        shorter: how to run less.
    """

    runs: int
    finished: int | None
    seconds: float
    unknown: int
    basis: str
    shorter: str

    def __str__(self) -> str:
        left, several = self.runs - (self.finished or 0), self.runs > 1
        line = f"{self.runs:,} run{'s' if several else ''}"
        if self.finished is not None and (self.finished or several):
            line += f", {self.finished:,} finished"
        known = left - self.unknown
        if known:
            which = f" for {known:,} of them" if self.unknown else ""
            line += f", about {in_time(self.seconds)} on this machine{which} ({self.basis})"
        if self.unknown:
            which = "it takes" if not several else "the others take" if known else "they take"
            line += f"; no stored run tells how long {which}"
        return line + (f"\n  {self.shorter}" if self.seconds > LONG else "")


def forecast(words: Sequence[str], configs: Path = CONFIGS) -> Forecast:
    """Estimate the runs of a command line.

    Each run is compared with the stored runs of its model and data set that share most of its
    values. Times of shipped runs are scaled by the ratio between the user's own runs and shipped
    ones of their kind. A run that patience may end counts as many steps as the stored one took.

    Args:
        words: checked words after `curvlab train`.
        configs: folder of configurations.

    Raises:
        UsageError: the words do not compose.
    """
    words = [word for word in words if not word.startswith("-")]
    overrides = [parsed(word) for word in words]
    overrides = [*swept_by_table(overrides, configs), *overrides]
    table = [word for word in words if word.startswith("table=")]
    base = compose([*next(variations(overrides)), *table], configs)
    keys, several = [o.key_or_group for o in overrides], {"study", "search"}.intersection(base)
    spelt = product(*(_values(override, configs) for override in overrides))
    cells: list[Cell] = [dict(zip(keys, each, strict=True)) for each in spelt]
    if "study" in base:
        cells = list(_of_study(base, words))
    elif "search" in base:
        cells *= base.search.trials * len(base.search.seeds)
    own, shipped = list(_own(Path(base.paths.output_dir))), list(_shipped())
    what = stored(base)
    decisive = [{k: v for k, v in cell.items() if decides(k, what)} for cell in cells]
    if base.rerun or several:
        left = decisive
    elif len(cells) == 1:
        left = [] if any(run.is_done(identity_hash(what)) for run in own) else decisive
    else:
        pairs = zip(cells, decisive, strict=True)
        left = [d for cell, d in pairs if not any(_is_of(run, cell, d, base) for run in own)]
    alike = [_closest([*own, *shipped], cell, base) for cell in left]
    factor, swept = _factor(own, shipped), len(cells) > 1 and not several

    def time(run: Stored, cell: Cell) -> float:
        """Steps are the sweep's own, where the stored run is of the same sweep."""
        same = swept and STEPS not in cell and run.result["experiment"] == base.experiment
        most = None if same else cell.get(STEPS, base.trainer.max_steps)
        return run.seconds(most) * (1 if run.own else factor)

    known = [(cell, runs) for cell, runs in zip(left, alike, strict=True) if runs]
    seconds = [median(time(run, cell) for run in runs) for cell, runs in known]
    used = {run.folder: run for runs in alike for run in runs}.values()
    devices = " and ".join(sorted({str(run.result["device"]).partition(":")[0] for run in used}))
    jobs = re.findall(r"hydra\.launcher\.n_jobs=(\d+)", " ".join(words)) or ["1"]
    at_once = os.cpu_count() or 1 if "study" in base else int(jobs[-1])
    return Forecast(
        runs=len(cells),
        finished=None if several else len(cells) - len(left),
        seconds=sum(seconds) / min(at_once, len(cells)),
        unknown=len(left) - len(seconds),
        basis=f"from {len(used):,} stored run{'s' if len(used) != 1 else ''} on {devices}"
        + (f", {at_once} at once" if at_once > 1 else ""),
        shorter=_shorter(base, keys),
    )


def _values(override: Override, configs: Path) -> Sequence[Any]:
    """The values of an override; of a pattern, the choices that it fits."""
    if override.value_type is not ValueType.GLOB_CHOICE_SWEEP:
        return spelt_out(override)
    pattern = override.value()
    assert isinstance(pattern, Glob)
    return pattern.filter(choices(configs, override.key_or_group))


def _own(folder: Path) -> Iterator[Stored]:
    """The user's runs."""
    for file in result_files(folder):
        with suppress(OSError, ValueError):  # damaged, or of another version: no cost to use
            if (result := load(file)).keys() >= USED:
                yield Stored(file.parent, result, own=True)


def _shipped() -> Iterator[Stored]:
    """The runs in the repository."""
    folder = Path(REPOSITORY or "", "docs", "results", "tables")
    for table in folder.rglob(f"*{SUFFIX}") if REPOSITORY is not None else ():
        for name, row in read_rows(table).items():
            yield Stored(folder_of(table) / name, row, own=False)


def _factor(own: Sequence[Stored], shipped: Sequence[Stored]) -> float:
    """How much longer steps take here than in shipped runs of the same kind, 1 if unknown."""
    theirs: dict[tuple[str, ...], list[float]] = {}
    for run in (run for run in shipped if run.cost):
        theirs.setdefault(run.kind, []).append(run.cost)
    ratios = [run.cost / median(theirs[run.kind]) for run in own if run.kind in theirs]
    return median(ratios) if ratios else 1.0


def _is_of(run: Stored, cell: Cell, decisive: Cell, base: DictConfig) -> bool:
    """Whether a stored run is the result of a cell, by its table or its folder, and its values."""
    if not run.is_done() or run.result["experiment"] != base.experiment:
        return False
    if base.experiment is None:
        words = [f"{key}={value}" for key, value in cell.items()]
        if run.folder.parent.name != run_name(words, _root_=base):
            return False
    return all(run.has(key, value) for key, value in decisive.items())


def _closest(runs: Sequence[Stored], decisive: Cell, base: DictConfig) -> list[Stored]:
    """Stored runs of a cell's model and data set that share most of its values.

    They are of the task too, unless they belong to the same table, or to another data set of the
    sweep, which brings a task of its own.
    """
    model, dataset = (str(decisive.get(key, base[key].name)) for key in ("model", "dataset"))
    task, table = str(decisive.get("task", base.task.name)), base.experiment
    free = table is None and "task" not in decisive and dataset != base.dataset.name
    alike = [
        run
        for run in runs
        if run.kind[1:] == (model, dataset)
        and run.cost
        and (free or run.kind[0] == task or run.result["experiment"] == table is not None)
    ]
    shared = [sum(run.has(k, v) for k, v in decisive.items()) + run.own / 2 for run in alike]
    return [run for run, number in zip(alike, shared, strict=True) if number == max(shared)]


def _of_study(base: DictConfig, words: Sequence[str]) -> Iterator[Cell]:
    """Runs of a study, each with its model and its space."""
    for model in base.study.models:
        for one in spaces_of(model, overrides_of_runs(words), base.study) * base.study.seeds:
            own = map(parsed, one.overrides)
            yield {o.key_or_group: o.value() for o in own}


def _shorter(base: DictConfig, keys: Sequence[str]) -> str:
    """How to run less."""
    if "study" in base:
        return "To run less, add study.seeds=3 or study.models=[fpst]."
    if "search" in base:
        return "To run less, add search.trials=10 or search.minutes=60."
    ways = [f"{key}=..." for key in ("seed", "model", "dataset") if key in keys]
    if base.experiment is None:
        return f"To run less, give {STEPS}=1000, or fewer values of what is swept."
    budget = f"curvlab tables estimate {base.experiment} --budget 1h"
    return f"To run less, choose by {', '.join(ways)}, or take the runs that {budget} names."

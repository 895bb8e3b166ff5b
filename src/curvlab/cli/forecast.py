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

from omegaconf import DictConfig

from curvlab.cli.overrides import parsed, spelt_out, swept_by_table, variations
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, REPOSITORY
from curvlab.config.options import decides
from curvlab.config.resolvers import run_name
from curvlab.program import in_time
from curvlab.results.identity import identity_hash, stored
from curvlab.results.result import CONCLUSIVE, load, result_files
from curvlab.results.run_tables import SUFFIX, folder_of, read_rows
from curvlab.study.twins import given, number_of_runs, twins_of

LONG = 3600.0
"""Seconds from which the forecast says how to run less."""

STEPS = "trainer.max_steps"

Cell = Mapping[str, Any]
"""Values of one run by the keys that the command line and the table set."""


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
    def seconds_per_step(self) -> float:
        """Wall time divided by the steps taken, with evaluations and start; 0 if not known."""
        return float(self.result["wall_seconds"] or 0) / max(1, self.result["steps"])

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

    def seconds(self, most: int | None, factor: float) -> float:
        """Time of a run like this one of at most `most` steps; None: of as many as this one's."""
        taken, limit = int(self.result["steps"]), self.config["trainer"]["max_steps"]
        steps = taken if most is None else min(taken, most) if taken < limit else most
        return self.seconds_per_step * steps * (1 if self.own else factor)


@dataclass(frozen=True)
class Forecast:
    """Runs that a command starts and their time.

    Attributes:
        runs: all runs of the command.
        finished: those with a result.
        seconds: estimated time of the others, as far as there are stored runs like them.
        unknown: runs without a stored run like them.
        basis: stored runs that the estimate uses, in words.
        shorter: how to run less.
    """

    runs: int
    finished: int
    seconds: float
    unknown: int
    basis: str
    shorter: str

    def __str__(self) -> str:
        left = self.runs - self.finished
        line = f"{self.runs:,} run{'s' if self.runs != 1 else ''}"
        line += f", {self.finished:,} finished" if self.finished or self.runs > 1 else ""
        if not left:
            return line
        if left > self.unknown:
            line += f", about {in_time(self.seconds)} on this machine ({self.basis})"
        if self.unknown:
            which = "its" if self.runs == 1 else f"{self.unknown:,} of their"
            line += f", no stored run of {which} model and data set to estimate the time from"
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
    cells = [dict(zip(keys, each, strict=True)) for each in product(*map(spelt_out, overrides))]
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
    factor, exact = _factor(own, shipped), several or len(cells) == 1
    seconds = [
        median(
            run.seconds(cell.get(STEPS, base.trainer.max_steps if exact else None), factor)
            for run in runs
        )
        for cell, runs in zip(left, alike, strict=True)
        if runs
    ]
    used = {run.folder: run for runs in alike for run in runs}.values()
    devices = " and ".join(sorted({str(run.result["device"]).partition(":")[0] for run in used}))
    jobs = re.findall(r"hydra\.launcher\.n_jobs=(\d+)", " ".join(words)) or ["1"]
    at_once = os.cpu_count() or 1 if "study" in base else int(jobs[-1])
    return Forecast(
        runs=len(cells),
        finished=len(cells) - len(left),
        seconds=sum(seconds) / min(at_once, len(cells)),
        unknown=len(left) - len(seconds),
        basis=f"from {len(used):,} stored run{'s' if len(used) != 1 else ''} on {devices}"
        + (f", {at_once} at once" if at_once > 1 else ""),
        shorter=_shorter(base, keys),
    )


def _own(folder: Path) -> Iterator[Stored]:
    """The user's runs."""
    for file in result_files(folder):
        with suppress(OSError, ValueError):  # damaged, or of another version: no cost to use
            yield Stored(file.parent, load(file), own=True)


def _shipped() -> Iterator[Stored]:
    """The runs in the repository."""
    folder = Path(REPOSITORY or "", "docs", "results", "tables")
    for table in folder.rglob(f"*{SUFFIX}") if REPOSITORY is not None else ():
        for name, row in read_rows(table).items():
            yield Stored(folder_of(table) / name, row, own=False)


def _factor(own: Sequence[Stored], shipped: Sequence[Stored]) -> float:
    """How much longer steps take here than in shipped runs of the same kind, 1 if unknown."""
    theirs: dict[tuple[str, ...], list[float]] = {}
    for run in (run for run in shipped if run.seconds_per_step):
        theirs.setdefault(run.kind, []).append(run.seconds_per_step)
    ratios = [run.seconds_per_step / median(theirs[run.kind]) for run in own if run.kind in theirs]
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
    """Stored runs of a cell's model and data set that share most of its values."""
    names = [str(decisive.get(key, base[key].name)) for key in ("model", "dataset")]
    alike = [run for run in runs if list(run.kind[1:]) == names and run.seconds_per_step]
    values = {"task": base.task.name, **decisive}
    shared = [sum(run.has(k, v) for k, v in values.items()) + run.own / 2 for run in alike]
    return [run for run, number in zip(alike, shared, strict=True) if number == max(shared)]


def _of_study(base: DictConfig, words: Sequence[str]) -> Iterator[Cell]:
    """Runs of a study, each with its model and its space."""
    for model in base.study.models:
        twins = twins_of(model, given(words), base.study)
        for i in range(number_of_runs(len(twins), base.study)):
            own = map(parsed, twins[i % len(twins)].words)
            yield {o.key_or_group: o.value() for o in own}


def _shorter(base: DictConfig, keys: Sequence[str]) -> str:
    """How to run less."""
    if "study" in base:
        return "To run less, add study.seeds=3, study.trials=0 or study.models=[fpst]."
    if "search" in base:
        return "To run less, add search.trials=10 or search.minutes=60."
    ways = [f"{key}=..." for key in ("seed", "model", "dataset") if key in keys]
    if base.experiment is None:
        return f"To run less, give {STEPS}=1000, or fewer values of what is swept."
    budget = f"curvlab tables estimate {base.experiment} --budget 1h"
    return f"To run less, choose by {', '.join(ways)}, or take the runs that {budget} names."

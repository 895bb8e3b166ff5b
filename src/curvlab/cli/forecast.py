"""Forecast the runs that a command starts and their time, from the costs of stored runs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.overrides import Complete, cells_of, parse
from curvlab.config.cache import CompositionCache
from curvlab.config.folder import RESULTS
from curvlab.config.validation import decides
from curvlab.errors import UsageError
from curvlab.files import find_below
from curvlab.leases import SUFFIX as LEASE
from curvlab.leases import find_holder
from curvlab.program import format_time
from curvlab.results.costs import FILE as COSTS
from curvlab.results.costs import (
    Cost,
    Kind,
    cost_of,
    is_comparable,
    read_costs,
    settings_of,
)
from curvlab.results.folder import RunDirectory, folders_by_hash
from curvlab.results.result import CONCLUSIVE, SET_ASIDE, load, result_files
from curvlab.run.cells import SEED, Cells, identify
from curvlab.run.command import Command, complete, finished
from curvlab.run.sections import seeds_from
from curvlab.search.space import search_seeds
from curvlab.study.flat_counterpart import models_in_spaces, run_overrides

LONG = 3600.0  # seconds from which the forecast says how to run less
SHORT = 60.0  # seconds below which a single run has no forecast
STEPS = "trainer.max_steps"
BY_COSTS = "by the cost of stored runs"

Cell = tuple[str, ...]  # the overrides of one run
Run = Mapping[str, Any]  # a stored result, or the configuration in it


class Forecast:
    """The runs of a command, those that are finished, and the time of the rest.

    The time of a run is that of the user's runs of the same model, data set, task and settings
    (`settings_of`), else of the repository's runs. Without such runs, runs with comparable settings
    give a rough time.

    Args:
        overrides: Overrides of the command, without flags.
        complete: Completes the overrides of a run.
        multirun: Whether the command is a sweep, whose runs are in other folders.
        cache: Identities of cells of earlier commands.
    """

    def __init__(
        self,
        overrides: Sequence[str],
        complete: Complete = complete,
        multirun: bool = True,
        cache: CompositionCache | None = None,
    ) -> None:
        self.complete = complete
        self.cells: list[Cell] = list(dict.fromkeys(map(tuple, cells_of(overrides))))
        self._identify = lru_cache(None)(
            partial(
                identify,
                complete=complete,
                folder_of=lambda run: run.folder(multirun),
                cache=cache if multirun else None,
            )
        )
        self._identities = Cells(self.cells, self._identify)
        self._times: dict[Cell, tuple[float | None, bool]] = {}
        first = self._identities.representative(self.cells[0])
        self.config = first.config
        self.table = first.experiment
        self.outputs = first.output_dir
        self.several = first.several  # a search or a study, which knows its finished runs
        self.base = complete(self.cells[0]).config if first.several else None
        cells = self.cells
        if self.base is not None and "study" in self.base:
            cells = [
                (*one.overrides, f"seed={seed}")
                for cell in cells
                for one in _study_runs(complete(cell))
                for seed in seeds_from(self.base.study.seeds, self.base.seed)
            ]
        elif self.base is not None:
            cells = cells * (self.base.search.trials * len(search_seeds(self.base)))
        self.runs = len(cells)
        self.unfinished = cells
        if not (self.several or first.rerun):
            self.unfinished = [cell for cell in cells if not self._is_finished(cell)]
        parallel = 1
        for override in overrides:
            if override.startswith("hydra.launcher.n_jobs="):
                parallel = int(override.partition("=")[2])
                break
        if self.base is not None and "study" in self.base:
            parallel = os.cpu_count() or 1
        self.parallel = min(parallel, self.runs)

    @cached_property
    def results(self) -> dict[Path, Run]:
        """The user's results by their folders."""
        return _read_runs(self.outputs)

    def seconds(self, cell: Cell) -> float | None:
        """Time of a cell's run; None without a stored run that is comparable with it."""
        return self._time(cell)[0]

    def is_rough(self, cell: Cell) -> bool:
        """Whether the time of a cell's run is that of runs with other settings."""
        return self._time(cell)[1]

    def _time(self, cell: Cell) -> tuple[float | None, bool]:
        """The time of a cell's run, and whether it is rough; the trials of a search share it."""
        if cell not in self._times:
            config = self._config(cell)
            costs = [] if config is None else self._costs(config, cell)
            self._times[cell] = None, False
            if config is not None and costs:
                settings = settings_of(config)
                is_rough = all(cost.settings != settings for cost in costs)
                self._times[cell] = seconds_of(config, costs), is_rough
        return self._times[cell]

    def _config(self, cell: Cell) -> Run | None:
        # A cell that cannot be composed reports it at its end.
        with suppress(UsageError, HydraException, OmegaConfBaseException):
            return self._identities.representative(cell).config
        return None

    def _costs(self, config: Run, cell: Cell) -> list[Cost]:
        """Costs of the user's runs with a cell's settings, else shipped or comparable ones."""
        values = [(key, value) for key, value in _values(cell) if decides(key, self.config)]
        by_shared: dict[tuple[bool, int], list[Cost]] = {}
        settings = settings_of(config)
        for stored in self._runs_by_kind.get(_kind_of(config), ()):
            cost = cost_of(stored)
            if cost is not None and is_comparable(config, cost.settings):
                shared = sum(_has(stored, key, value) for key, value in values)
                by_shared.setdefault((cost.settings == settings, shared), []).append(cost)
        user_costs = by_shared[max(by_shared)] if by_shared else []
        if user_costs and max(by_shared)[0]:
            return user_costs
        shipped = shipped_costs(config, self.table)
        exact = [cost for cost in shipped if cost.settings == settings]
        return exact or user_costs or shipped

    @cached_property
    def _runs_by_kind(self) -> dict[tuple[str, ...], list[Run]]:
        runs: dict[tuple[str, ...], list[Run]] = {}
        for run in self.results.values():
            kind = run["model"], run["config"]["dataset"]["name"], run["task"]
            runs.setdefault(kind, []).append(run)
        return runs

    def lines(self, by_cell: bool = False) -> Iterator[str]:
        """Report the number of runs and their time; after Ctrl-C, of the cells counted so far.

        Args:
            by_cell: Begin with the time of each cell.
        """
        total = 0.0
        known = 0
        prefix = ""
        precision = "about"
        try:
            for name, group in groupby(self.unfinished, key=self._name):
                cells = list(group)
                count = len(cells)
                seconds = self.seconds(cells[0])
                time = "no stored run tells how long"
                if seconds:
                    total += seconds * count
                    known += count
                    time = format_time(seconds * count)
                    if self.is_rough(cells[0]):
                        precision = "roughly"
                        time = f"{precision} {time}"
                if by_cell:
                    yield f"{name:<48} {count:>4} run{'s' if count > 1 else ' '}  {time}"
        except KeyboardInterrupt:
            prefix = "Interrupted: "
        total /= self.parallel
        line = f"{prefix}{self.runs:,} run{'s' if self.runs > 1 else ''}"
        line += "" if self.several else f", {self.runs - len(self.unfinished):,} finished"
        if known:
            part = f" for {known:,} of them" if known < len(self.unfinished) else ""
            line += f", {precision} {format_time(total)} on this machine{part}, {BY_COSTS}"
            line += f", {self.parallel} at once" if self.parallel > 1 else ""
        elif self.unfinished:
            line += "; no stored run tells how long they take"
        yield line
        if total > LONG:
            yield f"  To run less, {self._shorter()}."

    def progress(self, folder: Path) -> Iterator[str]:
        """Report which processes work on which runs of a table, and which runs failed."""
        for lease in find_below(folder, LEASE):
            holder = find_holder(lease)
            name = lease.parent.relative_to(folder)
            if holder is None:
                yield f"  abandoned  {name}: the next worker takes it"
            else:
                yield f"  at work    {name}: {holder}"
        for place, run in self.results.items():
            if place.is_relative_to(folder) and run["status"] in ("failed", "out_of_memory"):
                yield f"  failed     {place.relative_to(folder)}: {run['error']}"

    def _is_finished(self, cell: Cell) -> bool:
        values = dict(_values(cell))
        names = {"seed": self.config["seed"], "dataset": self.config["dataset"]["name"]}
        seed_and_dataset = tuple(values.get(key, name) for key, name in names.items())
        if seed_and_dataset not in self._stored:
            return False  # without composing the cell
        with suppress(UsageError, HydraException, OmegaConfBaseException):
            identity = self._identities.identity(cell)
            stored = self.results.get(identity.folder, {})
            has_ended = stored.get("status") in CONCLUSIVE
            if has_ended and stored["config_hash"] == identity.config_hash:
                return True
            return bool(finished(identity, identity.folder, self._by_hash))
        return False

    @cached_property
    def _stored(self) -> set[tuple[int, str]]:
        """Seeds and data sets of all results, including those of earlier configurations."""
        outputs = self.outputs
        moved = (path.parent for path in find_below(outputs, f"{SET_ASIDE}/*/result.json"))
        runs = [*self.results.values(), *(_read_run(folder) for folder in moved)]
        return {(run["seed"], run["config"]["dataset"]["name"]) for run in runs if run}

    @cached_property
    def _by_hash(self) -> dict[str, list[Path]]:
        return folders_by_hash(self.outputs)

    def _name(self, cell: Cell) -> str:
        values = _values(cell)
        return ", ".join(str(v) for key, v in values if key != "seed" and decides(key, self.config))

    def _shorter(self) -> str:
        if self.base is not None and "study" in self.base:
            return "add study.seeds=3 or study.models=[fpst]"
        if self.several:
            return "add search.trials=10 or search.minutes=60"
        if self.table is None:
            return f"give {STEPS}=1000, or fewer values of what is swept"
        keys = dict(_values(self.cells[0]))
        ways = [f"{key}=..." for key in ("seed", "model", "dataset") if key in keys]
        return f"choose by {', '.join(ways)}; curvlab tables estimate prints the time of each cell"


def forecast_of_run(run: Command, folder: Path) -> str:
    """Forecast the time of a single run; empty if it is short or the run has ended."""
    costs = shipped_costs(run.stored, run.config.experiment)
    seconds = seconds_of(run.stored, costs)
    if seconds is None or seconds < SHORT or RunDirectory(folder).conclusion(run.config_hash):
        return ""
    settings = settings_of(run.stored)
    precision = "about" if any(cost.settings == settings for cost in costs) else "roughly"
    return f"{precision} {format_time(seconds)} on this machine, {BY_COSTS}"


def shipped_costs(config: Run, table: str | None) -> list[Cost]:
    """Shipped costs of runs with a configuration's settings, else with comparable settings.

    Costs of its own table are preferred.
    """
    kind = _kind_of(config)
    settings = settings_of(config)
    path = RESULTS / COSTS
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    shipped = _costs_by_kind(path, changed).get(kind, [])
    costs = [cost for cost in shipped if cost.settings == settings]
    if not costs:
        costs = [cost for cost in shipped if is_comparable(config, cost.settings)]
    return [cost for cost in costs if cost.table == table] or costs


@lru_cache(8)  # a sweep asks for each of its cells
def _costs_by_kind(path: Path, _changed: int) -> dict[Kind, list[Cost]]:
    """The costs of a file by kind, read again after a change of the file."""
    by_kind: dict[Kind, list[Cost]] = {}
    for cost in read_costs(path):
        by_kind.setdefault(cost.kind, []).append(cost)
    return by_kind


def seconds_of(config: Run, costs: Sequence[Cost]) -> float | None:
    """The time of a run of a stored configuration by these costs; None without any."""
    steps = int(config["trainer"]["max_steps"])
    return median(cost.seconds(steps) for cost in costs) if costs else None


def _kind_of(config: Run) -> tuple[str, str, str]:
    return config["model"]["name"], config["dataset"]["name"], config["task"]["name"]


def _read_runs(folder: Path) -> dict[Path, Run]:
    """The results of the runs below a folder by their folders."""
    runs = {file.parent: _read_run(file.parent) for file in result_files(folder)}
    return {place: run for place, run in runs.items() if run}


def _read_run(folder: Path) -> Run | None:
    with suppress(OSError, ValueError):  # damaged or of another version: it has no cost
        run: Run = load(folder / "result.json")
        return run
    return None


def _values(cell: Sequence[str]) -> list[tuple[str, Any]]:
    return [_value(override) for override in cell]


@lru_cache(4096)  # cells share most of their overrides
def _value(override: str) -> tuple[str, Any]:
    seed = SEED.fullmatch(override)
    if seed:
        return "seed", int(seed[1])
    parsed = parse(override)
    return parsed.key_or_group, parsed.value()


def _has(run: Run, key: str, value: Any) -> bool:
    """Whether a run has a value of a key, or was built with a choice of a group."""
    node: Any = run["config"]
    for name in key.lstrip("+").split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    if isinstance(node, Mapping):
        node = node.get("name")
    return bool(node == value)


def _study_runs(study: Command) -> Iterator[Any]:
    for model in study.config.study.models:
        yield from models_in_spaces(model, run_overrides(study.overrides), study.config.study)

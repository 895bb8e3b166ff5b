"""The number of runs that a command starts and their time, from the costs of stored runs."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby, product
from pathlib import Path
from statistics import median
from typing import Any

from omegaconf import DictConfig

from curvlab.cli.overrides import parse, spelt_out, swept_by_table, variations
from curvlab.config.compose import compose
from curvlab.config.folder import REPOSITORY
from curvlab.config.options import decides
from curvlab.config.resolvers import run_name
from curvlab.program import format_time
from curvlab.results.identity import FILES, identity_hash, stored_config
from curvlab.results.leases import SUFFIX as LEASE
from curvlab.results.leases import look
from curvlab.results.result import CONCLUSIVE, load, result_files
from curvlab.study.flat_counterpart import overrides_of_runs, spaces_of

LONG = 3600.0  # seconds from which the forecast says how to run less
START = 5.0  # seconds before the first step and after the last
STEPS = "trainer.max_steps"

Cell = Mapping[str, Any]  # values of one run by the keys that the command line and the table set
Run = Mapping[str, Any]  # a stored result


class Forecast:
    """The runs of a command, those that are finished, and the time of the others.

    A run takes what the stored runs took that share most of its values, the user's own and those of
    the repository.
    """

    def __init__(self, words: Sequence[str]) -> None:
        words = [word for word in words if not word.startswith("-")]
        overrides = [parse(word) for word in words]
        overrides = [*swept_by_table(overrides), *overrides]
        table = [word for word in words if word.startswith("table=")]
        self.first = [*next(variations(overrides)), *table]
        self.base = base = compose(self.first)
        values = {override.key_or_group: spelt_out(override) for override in overrides}
        spelt = {tuple(map(str, each)): each for each in product(*values.values())}
        cells: list[Cell] = [dict(zip(values, each, strict=True)) for each in spelt.values()]
        if "study" in base:
            cells = list(_study_runs(base, words))
        elif "search" in base:
            cells *= base.search.trials * len(base.search.seeds)
        self.several_values = {key for key, each in values.items() if len(each) > 1}
        self.several = "study" in base or "search" in base  # which know their finished runs
        self.keys, self.runs = list(values), len(cells)
        self.swept = self.runs > 1 and not self.several
        self.config, self.own = stored_config(base), _read_runs(Path(base.paths.output_dir))
        self.left = [c for c in cells if self.several or base.rerun or not self._is_finished(c)]
        (jobs,) = values.get("hydra.launcher.n_jobs", (1,))
        self.at_once = min(os.cpu_count() or 1 if "study" in base else jobs, self.runs)

    @cached_property
    def stored(self) -> list[Run]:
        """The user's own runs, and those of the repository that ran on a CPU."""
        tables = () if REPOSITORY is None else [REPOSITORY / "docs" / "results" / "tables"]
        shipped = (run for folder in tables for run in _read_runs(folder).values())
        return [*self.own.values(), *(run for run in shipped if run["device"] == "cpu")]

    def seconds(self, cell: Cell) -> float | None:
        """Time of a cell's run; None without a stored run of its model, data set and task."""
        base, table = self.base, self.base.experiment
        task, *kind = (str(cell.get(key, base[key].name)) for key in ("task", "model", "dataset"))
        shared: dict[float, list[float]] = {}
        for i, run in enumerate(self.stored):
            if [run["model"], run["dataset"]] != kind or not (cost := _cost(run)):
                continue
            config, of_table = run["config"], table and run["experiment"] == table
            tasks = config["dataset"]["tasks"]  # the first is the default
            if run["task"] == (task if task in tasks else tasks[0]) or of_table:
                taken, limit = int(run["steps"]), config["trainer"]["max_steps"]
                as_long = self.swept and run["experiment"] == table
                most = cell.get(STEPS, taken if as_long else base.trainer.max_steps)
                steps = min(taken, most) if taken < limit else most
                same = sum(_has(run, key, value) for key, value in self._decisive(cell))
                own = i < len(self.own)  # of equally similar runs those of this machine count
                shared.setdefault(same + own / 2, []).append(START + cost * steps)
        return median(shared[max(shared)]) if shared else None

    def lines(self, each: bool = False) -> Iterator[str]:
        """Report the number of runs and their time; after Ctrl-C, of the cells seen so far."""
        total, known, ended = 0.0, 0, ""
        try:
            for name, cells in groupby(self.left, key=self._name):
                cell, *others = cells
                took, count = self.seconds(cell), 1 + len(others)
                total, known = (total + took * count, known + count) if took else (total, known)
                if each:
                    said = format_time(took * count) if took else "no stored run tells how long"
                    yield f"{name:<48} {count:>4} run{'s' if count > 1 else ' '}  {said}"
        except KeyboardInterrupt:
            ended = "Interrupted: "
        total /= self.at_once
        line = f"{ended}{self.runs:,} run{'s' if self.runs > 1 else ''}"
        line += "" if self.several else f", {self.runs - len(self.left):,} finished"
        if known:
            which = f" for {known:,} of them" if known < len(self.left) else ""
            line += f", about {format_time(total)} on this machine{which}"
            line += ", by the cost of stored runs"
            line += f", {self.at_once} at once" if self.at_once > 1 else ""
        elif self.left:
            line += "; no stored run tells how long they take"
        yield line
        if total > LONG:
            yield f"  To run less, {self._shorter()}."

    def progress(self, folder: Path) -> Iterator[str]:
        """Report which process works on which run of a table, and which runs failed."""
        for lease in sorted(folder.rglob(LEASE)):
            holder, name = look(lease), lease.parent.relative_to(folder)
            left = f"  abandoned  {name}: the next worker takes it"
            yield f"  at work    {name}: {holder}" if holder else left
        for place, run in self.own.items():
            if place.is_relative_to(folder) and run["status"] in ("failed", "out_of_memory"):
                yield f"  failed     {place.relative_to(folder)}: {run['error']}"

    def _is_finished(self, cell: Cell) -> bool:
        done = {p: run for p, run in self.own.items() if run["status"] in CONCLUSIVE}
        if FILES in self.config or not self.swept:
            own = identity_hash(self._config_of(cell) if self.swept else self.config)
            return any(run["config_hash"] == own for run in done.values())
        table, words = self.base.experiment, [f"{key}={value}" for key, value in cell.items()]
        name = run_name(words, _root_=self.base)
        return any(
            run["experiment"] == table
            and (table is not None or place.parent.name == name)
            and all(_has(run, key, value) for key, value in self._decisive(cell))
            for place, run in done.items()
        )

    def _config_of(self, cell: Cell) -> dict[str, Any]:
        words = []
        for word in self.first:
            override = parse(word)
            key = override.key_or_group
            if key in self.several_values:
                text = "null" if cell[key] is None else str(cell[key])
                text = text if re.fullmatch(r"[\w./~+-]+", text) else f"'{text}'"
                word = f"{override.get_key_element()}={text}"
            words.append(word)
        return stored_config(compose(words))

    def _decisive(self, cell: Cell) -> list[tuple[str, Any]]:
        return [(key, value) for key, value in cell.items() if decides(key, self.config)]

    def _name(self, cell: Cell) -> str:
        return ", ".join(str(value) for key, value in self._decisive(cell) if key != "seed")

    def _shorter(self) -> str:
        if "study" in self.base:
            return "add study.seeds=3 or study.models=[fpst]"
        if "search" in self.base:
            return "add search.trials=10 or search.minutes=60"
        if self.base.experiment is None:
            return f"give {STEPS}=1000, or fewer values of what is swept"
        ways = [f"{key}=..." for key in ("seed", "model", "dataset") if key in self.keys]
        return f"choose by {', '.join(ways)}; curvlab tables estimate has the time of each cell"


def _read_runs(folder: Path) -> dict[Path, Run]:
    """The results of the runs below a folder by their folders."""
    found = {}
    for file in result_files(folder):
        with suppress(OSError, ValueError):  # damaged, or of another version: no cost to use
            found[file.parent] = load(file)
    return found


def _cost(run: Run) -> float:
    """Seconds per step, with evaluations; 0 if unknown."""
    wall = max(0.0, float(run["wall_seconds"] or 0) - START)
    return max(wall / max(1, run["steps"]), float(run["ms_per_step"] or 0) / 1e3)


def _has(run: Run, key: str, value: Any) -> bool:
    """Whether a run has a value of a key, or was built with a choice of a group."""
    node: Any = run["config"]
    for name in key.lstrip("+").split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return bool((node.get("name") if isinstance(node, Mapping) else node) == value)


def _study_runs(base: DictConfig, words: Sequence[str]) -> Iterator[Cell]:
    for model in base.study.models:
        for one in spaces_of(model, overrides_of_runs(words), base.study) * base.study.seeds:
            own = map(parse, one.overrides)
            yield {o.key_or_group: o.value() for o in own}

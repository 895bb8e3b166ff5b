"""Run the cells of a sweep, here or by Hydra's launchers; machines may share one sweep."""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, run_job
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from curvlab.config.cache import user_cache
from curvlab.errors import (
    UsageError,
    configuration_message,
    error_sentence,
    system_message,
    system_remedy,
)
from curvlab.leases import SUFFIX, HeldError, find_holder
from curvlab.program import print_if_slow
from curvlab.results.folder import RunDirectory
from curvlab.results.result import read_result
from curvlab.run import reporting, signals
from curvlab.run.cells import CellIdentity, Cells, identify
from curvlab.run.command import complete, spare_read_only
from curvlab.run.reporting import relative_path, say

NAME = "hydra_plugins.curvlab.TableSweeper"
"""The address of the sweeper in configurations; Hydra takes plugins from `hydra_plugins` alone."""

LAST_START = "CURVLAB_LAST_START"  # environment variable with the time after which no cell starts
NOT_STARTED, ELSEWHERE = "not started", "at work elsewhere"
"""Ends of cells that are not errors, in addition to `finished`."""

POLL_SECONDS = 0.2  # between checks of cells whose processes may be dead


def register() -> None:
    """Register the sweeper with Hydra."""
    Plugins.instance().class_name_to_class[NAME] = TableSweeper


def is_over() -> bool:
    """Whether no more cells of this sweep may start."""
    return time.time() > float(os.environ.get(LAST_START, "inf"))


class TableSweeper(BasicSweeper):
    """Hydra's sweeper: composes each cell when it is next, and skips finished ones."""

    hydra_context: HydraContext
    config: DictConfig
    launcher: Launcher

    def __init__(self, minutes: float | None = None, params: dict[str, str] | None = None) -> None:
        # The base's constructor is not called: Hydra reloads its module when it lists plugins.
        self.minutes = minutes
        self.params = params or {}
        self._cache = user_cache()
        self._folders: dict[tuple[str, ...], Path] = {}
        self._held: dict[Path, Sequence[str]] = {}
        self._refused: dict[str, str] = {}
        self._failed: set[Path] = set()  # cells that failed, which may keep an earlier result

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Keep Hydra's arguments."""
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        self._task = task_function
        self._here = config.hydra.runtime.choices["hydra/launcher"] == "basic"

    def sweep(self, arguments: list[str]) -> None:
        """Run all cells, print the summary, and exit with code 1 if one has no score."""
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *arguments])
        (combinations,) = self.split_arguments(overrides, None)
        cells = [*dict.fromkeys(map(tuple, combinations))]  # without duplicates
        if self.minutes is not None:
            os.environ[LAST_START] = str(time.time() + 60 * float(self.minutes))
        to_launch: list[Sequence[str]] = []
        identities = Cells(cells, self._identify)
        try:
            for cell in cells:
                if is_over():
                    break
                try:
                    with print_if_slow(f"composing {' '.join(cell)}"):
                        identity = identities.identity(cell)
                        if self._reports_end(identity):
                            continue
                        cell = identity.overrides
                        config = self._compose(cell)
                except (UsageError, HydraException, OmegaConfBaseException) as error:
                    self._refused[" ".join(cell)] = configuration_message(error)
                    continue
                if self._here:
                    self._run(cell, config)
                else:
                    to_launch.append([*cell])
            self._launch(to_launch)
            self._take_over()
        finally:
            ends = self._summarise(len(cells))
        if ends - {"finished", NOT_STARTED, ELSEWHERE}:
            sys.exit(1)

    def _reports_end(self, cell: CellIdentity) -> bool:
        """Whether a cell has ended in its folder, which is reported without composing it."""
        if cell.rerun or cell.several:
            return False
        folder = RunDirectory(cell.folder)
        result = folder.conclusion(cell.config_hash)
        if result is None or folder.is_unclosed:
            return False
        self._folders[cell.overrides] = cell.folder
        if self._here:
            reporting.report_run(result, cell.folder, already=True)
        return True

    def _identify(self, cell: Sequence[str]) -> CellIdentity:
        """The identity of a cell, in the folder that Hydra's options may name."""
        options = self.config.hydra.overrides.hydra
        if all(re.match(r"hydra([/.]launcher|\.sweeper|\.mode)", each) for each in options):
            identity = identify(cell, complete, lambda run: run.folder(multirun=True), self._cache)
            return replace(identity, folder=identity.folder.resolve())
        return identify(cell, complete, lambda run: self._folder_of(run.overrides))

    def _folder_of(self, cell: Sequence[str]) -> Path:
        return Path(self._compose_at(cell).hydra.runtime.output_dir)

    def _compose(self, cell: Sequence[str]) -> DictConfig:
        """A cell's configuration, with Hydra's part and the run's folder in it."""
        config = self._compose_at(cell)
        self._folders[tuple(cell)] = Path(config.hydra.runtime.output_dir)
        return config

    def _compose_at(self, cell: Sequence[str]) -> DictConfig:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(cell))
        HydraConfig.instance().set_config(config)
        with read_write(config.hydra), open_dict(config):
            config.hydra.job.num = config.hydra.job.id = len(self._folders)
            folder = Path(config.hydra.sweep.dir, config.hydra.sweep.subdir).resolve()
            config.hydra.runtime.output_dir = str(folder)
        spare_read_only(config, folder)
        return config

    def _run(self, cell: Sequence[str], config: DictConfig) -> None:
        job = run_job(
            self._task,
            config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
            hydra_context=self.hydra_context,
        )
        self._note_end(cell, job)

    def _launch(self, cells: Sequence[Sequence[str]]) -> None:
        """Run cells by another launcher; if it fails, their result files count."""
        if not cells:
            return
        try:
            with signals.wait(lambda: [child.pid for child in psutil.Process().children()]):
                returns = self.launcher.launch(cells, initial_job_idx=0)
        except Exception as error:
            signals.check(at_checkpoint=True)  # which may have ended a starting worker
            self._refused["the launcher"] = self._why_not_launched(error)
            return
        for cell, job in zip(cells, returns, strict=True):
            self._note_end(cell, job)

    def _why_not_launched(self, error: Exception) -> str:
        """The error of a launcher, and for an error of the system its remedy."""
        if not isinstance(error, OSError):
            return error_sentence(error)
        outputs = Path(self.config.paths.output_dir).resolve()
        return f"{system_message(error, outputs)}; {system_remedy(error)}"

    def _note_end(self, cell: Sequence[str], job: JobReturn) -> None:
        """Note a cell that failed or is held elsewhere; raise any other exception of a job."""
        if isinstance(job._return_value, HeldError):
            self._held[job._return_value.path] = cell
        elif job.return_value is None and not signals.last_signal() and not is_over():
            assert job.hydra_cfg is not None
            self._failed.add(Path(job.hydra_cfg.hydra.runtime.output_dir))

    def _take_over(self) -> None:
        """Run cells that were held by processes that have released them or died."""
        while self._held:
            holders = {path: find_holder(path) for path in self._held}
            for path in (path for path, holder in holders.items() if holder is None):
                cell = self._held.pop(path)
                self._run(cell, self._compose(cell))
            remaining = [holder for holder in holders.values() if holder is not None]
            if len(remaining) == len(holders):
                if all(holder.alive for holder in remaining):
                    return
                time.sleep(POLL_SECONDS)

    def _summarise(self, total: int) -> set[str]:
        """Print how the cells ended, errors, and means over seeds; return the kinds of ends."""
        ends = {folder: _end_of(folder) for folder in dict.fromkeys(self._folders.values())}
        for folder in self._failed:
            if ends[folder][0] == "finished":
                ends[folder] = "failed", "it failed, and its earlier result was kept"
        counts = Counter(ends[folder][0] for folder in self._folders.values())
        counts["failed"] += len(self._refused)
        counts[NOT_STARTED] += total - counts.total()
        reasons = {relative_path(folder): reason for folder, (_, reason) in ends.items() if reason}
        summary = ", ".join(f"{n} {end.replace('_', ' ')}" for end, n in (+counts).items())
        say(f"sweep of {total} {'cell' if total == 1 else 'cells'}: {summary}")
        for cell, reason in (reasons | self._refused).items():
            say(f"  {cell}: {reason}")
        table = self.config.hydra.runtime.choices.get("table")
        if table is None:
            reporting.means_over_seeds(self._folders.values())
        else:
            outputs = Path(self.config.paths.output_dir)
            option = "" if outputs == Path("outputs") else f" --results {outputs / 'tables'}"
            say(f"  its table: curvlab tables {table}{option}")
        return set(+counts)


def _end_of(folder: Path) -> tuple[str, str]:
    """How a cell ended, and why if it did not finish."""
    result = read_result(folder)
    if result is not None and result.status == "finished":
        return result.status, ""
    leases = sorted(folder.glob(f"*{SUFFIX}"))
    holders = [holder for holder in map(find_holder, leases) if holder is not None]
    if holders:
        return ELSEWHERE, f"held by {' and '.join(map(str, holders))}"
    if result is None and is_over():
        return NOT_STARTED, ""
    if result is None:
        return "without result", "its process ended without one"
    return result.status, f"{result.status.replace('_', ' ')}: {result.error}"

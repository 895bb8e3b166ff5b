"""A sweep is a queue: any number of workers, on any number of machines, share its cells.

Each worker is the same command. It goes through all cells, leaves alone what others hold or have
ended, and at its end takes over what was abandoned. Cells that others are at work on are theirs.
"""

import atexit
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from curvlab.errors import NO_ROOM, of_system
from curvlab.program import program
from curvlab.results.leases import HeldError, holders, look
from curvlab.results.result import read_result
from curvlab.run import reporting, signals

Role = Literal["alone", "worker", "summary"]

OTHERS = "at work elsewhere"
"""What is said of a cell that another worker holds."""

LOOKS = 0.2
"""Seconds between two looks at cells that others hold."""


@dataclass
class _Held:
    """A cell that another worker held when its turn came."""

    hydra: Any
    config: DictConfig
    work: Callable[[DictConfig], float | None]
    lease: Path


@dataclass
class _Sweep:
    """The sweep of this process.

    Attributes:
        began: when, by the clock of the disk that results are on; None outside of a sweep.
        role: `worker` of a launcher, which leaves it to sum up; `summary`, which only does that.
        cells: folders of the cells, in their order.
        held: what others hold.
    """

    began: float | None = None
    role: Role = "alone"
    cells: list[Path] = field(default_factory=list)
    held: list[_Held] = field(default_factory=list)


_sweep = _Sweep()


def begin(began: float | None, role: Role) -> None:
    """Make this process one of a sweep's.

    Args:
        began: as `now_on_disk` said when the sweep began.
        role: see `_Sweep`.
    """
    _sweep.began, _sweep.role = began, role


def began() -> float | None:
    """When the sweep of this process began; None outside of one."""
    return _sweep.began


def role() -> Role:
    """What this process does in its sweep."""
    return _sweep.role


def now_on_disk(folder: Path) -> float:
    """The time by the clock of the disk that a folder is on: no machine's clock is compared to it.

    Raises:
        OSError: nothing can be written there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".now-")
    try:
        return os.fstat(handle).st_mtime
    finally:
        os.close(handle)
        Path(name).unlink()


def written_since(file: Path) -> bool:
    """Whether a file was written since the sweep of this process began."""
    try:
        return _sweep.began is not None and file.stat().st_mtime >= _sweep.began
    except OSError:
        return False


def attempt(work: Callable[[DictConfig], float | None], config: DictConfig) -> float | None:
    """Run a cell, unless another worker holds it: then what it is waits for the sweep's end."""
    if _sweep.role == "summary":
        return None
    try:
        return work(config)
    except HeldError as error:
        _sweep.held.append(_Held(HydraConfig.instance().cfg, config, work, error.path))
        return None


def finish_held() -> None:
    """Run cells that others held and have given back or abandoned.

    A worker of another machine is known to live once its lease has changed; until then it is
    watched. Nothing else is waited for.
    """
    while _sweep.held:
        free = [cell for cell in _sweep.held if look(cell.lease) is None]
        for cell in free:
            _sweep.held.remove(cell)
            HydraConfig.instance().cfg = cell.hydra
            attempt(cell.work, cell.config)
        if free:
            continue
        others = [look(cell.lease) for cell in _sweep.held]
        if all(holder is not None and holder.alive for holder in others):
            return
        time.sleep(LOOKS)


class SweepSummary(Callback):
    """Counts a sweep's cells by status, names those without a score, and then exits with code 1.

    Cells may have run in other processes, on other machines, or long ago: their result files say
    how they ended, and leases who is at work.
    """

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Note when the sweep begins."""
        folder = Path(config.hydra.sweep.dir).resolve()
        try:
            if _sweep.began is None:
                begin(now_on_disk(folder), "alone")
        except OSError as error:  # Hydra would only warn
            print(f"{program('train')}: {of_system(error, folder)}; {NO_ROOM}", file=sys.stderr)
            sys.exit(1)
        atexit.register(self._end, config)

    def on_job_start(self, config: DictConfig, **_: Any) -> None:
        """Note where one job's cells are."""
        first = Path(config.hydra.runtime.output_dir)
        others = range(config.seed + 1, config.seed + config.trainer.parallel_seeds)
        _sweep.cells += [first, *(first.with_name(f"seed{seed}") for seed in others)]

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Take over what was abandoned, and print the summary."""
        finish_held()
        if _sweep.role != "worker" and self._summarise(config) - {"finished", OTHERS}:
            sys.exit(1)

    def _end(self, config: DictConfig) -> None:
        """Sum up what a signal has ended."""
        if signals.received() is not None and _sweep.role != "worker":
            self._summarise(config)

    def _summarise(self, config: DictConfig) -> set[str]:
        """Say how the cells that have begun ended, or who is at work on them; the ways."""
        ends = {cell: _end_of(cell) for cell in dict.fromkeys(_sweep.cells)}
        table = config.hydra.runtime.choices.get("table")
        ways = Counter(way for way, _ in ends.values())
        reporting.sweep_finished(ways, {cell: why for cell, (_, why) in ends.items() if why})
        if table is not None:
            reporting.table_hint(table, Path(config.paths.output_dir))
        return set(ways)


def _end_of(cell: Path) -> tuple[str, str]:
    """How a cell ended, and why if it has no score."""
    result = read_result(cell)
    if result is not None and result.status == "finished":
        return result.status, ""
    if others := holders(cell):
        return OTHERS, f"held by {' and '.join(map(str, others))}"
    if result is None:
        return "without result", "its process ended before it could write a result"
    return result.status, f"{result.status.replace('_', ' ')}: {result.error}"

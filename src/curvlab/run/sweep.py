"""The end of a sweep: how its cells ended, from their result files."""

import atexit
import os
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from curvlab.errors import NO_ROOM, of_system
from curvlab.program import program
from curvlab.results.files import collect, hold
from curvlab.results.result import Result, read_result
from curvlab.run import reporting, signals

NOTES = ".sweep-"
"""What the names of folders of notes begin with."""


class SweepSummary(Callback):
    """Counts a sweep's cells by status, names those without a score, and then exits with code 1.

    Cells may run in other processes, on other machines, or have finished long ago. Each one leaves
    a note of where it is when it starts, and the summary reads the result files that the notes
    lead to.
    """

    def __init__(self) -> None:
        self._notes: Path | None = None

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Make a folder for the notes, beside the cells, where all of them can write."""
        folder = Path(config.hydra.sweep.dir).resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for left in folder.glob(f"{NOTES}*"):  # by sweeps that were killed
                collect(left)
            self._notes = _held_folder(folder)
        except OSError as error:  # Hydra would only warn
            print(f"{program('train')}: {of_system(error, folder)}; {NO_ROOM}", file=sys.stderr)
            sys.exit(1)
        atexit.register(self._end, config)

    def on_job_start(self, config: DictConfig, **_: Any) -> None:
        """Leave the note of one job's cells (in the process that runs it)."""
        signals.install(speaks=False)
        if self._notes is not None:
            first = Path(config.hydra.runtime.output_dir)
            others = range(config.seed + 1, config.seed + config.trainer.parallel_seeds)
            cells = [first, *(first.with_name(f"seed{seed}") for seed in others)]
            note = "\n".join(map(str, cells))
            (self._notes / str(config.hydra.job.num)).write_text(note, encoding="utf-8")

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Print the summary."""
        results = self._summarise(config)
        if any(result is None or result.status != "finished" for result in results.values()):
            sys.exit(1)

    def _end(self, config: DictConfig) -> None:
        """Sum up what a signal has ended, and leave no notes."""
        assert self._notes is not None
        if signals.received() is not None:
            self._summarise(config)
        shutil.rmtree(self._notes, ignore_errors=True)

    def _summarise(self, config: DictConfig) -> dict[Path, Result | None]:
        """Say how the cells that have begun ended."""
        assert self._notes is not None
        notes = sorted(self._notes.iterdir(), key=lambda note: int(note.name))
        cells = [Path(p) for note in notes for p in note.read_text(encoding="utf-8").splitlines()]
        results = {cell: read_result(cell) for cell in cells}
        table = config.hydra.runtime.choices.get("table")
        reporting.sweep_finished(_counts(results), _unfinished(results))
        if table is not None:
            reporting.table_hint(table, Path(config.paths.output_dir))
        return results


def _counts(results: dict[Path, Result | None]) -> dict[str, int]:
    """How many cells ended in which way."""
    return Counter(result.status if result else "without result" for result in results.values())


def _unfinished(results: dict[Path, Result | None]) -> dict[Path, str]:
    """Cells without a score, and why."""
    reasons = {}
    for cell, result in results.items():
        if result is None:
            reasons[cell] = "its process ended before it could write a result"
        elif result.status != "finished":
            reasons[cell] = f"{result.status.replace('_', ' ')}: {result.error}"
    return reasons


def _held_folder(place: Path) -> Path:
    """A new folder for notes, which nobody collects while this process lives."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=NOTES, dir=place))
        with suppress(FileNotFoundError):  # another sweep has collected it before it was locked
            hold(os.open(made, os.O_RDONLY))
            if made.exists():
                return made

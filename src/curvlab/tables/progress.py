"""How far a table's sweep is: what is done, who is at work where, what failed, what is left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from curvlab.results.folder import LEASE, RunDirectory
from curvlab.results.identity import identity_hash
from curvlab.results.leases import Holder, look
from curvlab.results.result import read_result
from curvlab.tables.planning import PlannedRun

SECONDS = 10.0
"""Between two looks while watching."""


@dataclass(frozen=True)
class Progress:
    """The state of a table's runs.

    Attributes:
        table: its name.
        runs: all of its sweep.
        seconds: how long each of those took that are done, as far as known.
        done: how many have a result that need not be repeated.
        at_work: runs with the processes that are at them.
        failed: runs with why they have no score.
        abandoned: runs of processes that are no more; the next worker goes on with them.
    """

    table: str
    runs: Sequence[PlannedRun]
    seconds: Sequence[float]
    done: int
    at_work: dict[PlannedRun, Holder]
    failed: dict[PlannedRun, str]
    abandoned: Sequence[PlannedRun]

    @property
    def left(self) -> int:
        """Runs that are not done and have not failed."""
        return len(self.runs) - self.done - len(self.failed)

    @property
    def hours_left(self) -> float | None:
        """Hours until the workers of now are through; None before a run is done."""
        if not self.seconds:
            return None
        return self.left * median(self.seconds) / max(1, len(self.at_work)) / 3600

    def text(self) -> str:
        """A line for the table, and one for each run of which there is something to say."""
        counts = (
            f"{self.done:,} of {len(self.runs):,} runs done, {len(self.at_work)} at work, "
            f"{len(self.failed)} failed, {self.left - len(self.at_work):,} to do"
        )
        lines = [f"{self.table}: {counts}"]
        lines += [f"  at work    {run.name}: {holder}" for run, holder in self.at_work.items()]
        lines += [f"  abandoned  {run.name}: the next worker takes it" for run in self.abandoned]
        lines += [f"  failed     {run.name}: {why}" for run, why in self.failed.items()]
        if self.left and self.hours_left is not None:
            workers = max(1, len(self.at_work))
            lines.append(
                f"  about {self.hours_left:.1f} h left with {workers} "
                f"worker{'s' if workers > 1 else ''}, at {median(self.seconds) / 60:.1f} minutes "
                "a run (the median)"
            )
        return "\n".join(lines) + "\n"


def progress(table: str, runs: Sequence[PlannedRun], results: Path) -> Progress:
    """Look at the folders of a table's runs.

    Args:
        table: its name.
        runs: of its sweep.
        results: the folder of all tables' runs.
    """
    at_work: dict[PlannedRun, Holder] = {}
    failed: dict[PlannedRun, str] = {}
    abandoned: list[PlannedRun] = []
    seconds: list[float] = []
    done = 0
    for run in runs:
        folder = results / run.folder
        holder = look(folder / LEASE)
        result = read_result(folder)
        if holder is not None:
            at_work[run] = holder
        elif (ended := RunDirectory(folder).conclusion(run.config_hash)) is not None:
            done += 1
            seconds += [ended.wall_seconds] if ended.wall_seconds else []
        elif (folder / LEASE).exists():
            abandoned.append(run)
        elif (
            result is not None
            and result.status in ("failed", "out_of_memory")
            and identity_hash(result.config, result.revisions) == run.config_hash
        ):
            failed[run] = f"{result.status.replace('_', ' ')}: {result.error}"
    return Progress(table, runs, seconds, done, at_work, failed, abandoned)


def watch(look_again: Callable[[], Progress], show: Callable[[str], None]) -> Progress:
    """Show how far a table is, again and again, until nothing of it is left to do."""
    while True:
        now = look_again()
        show(now.text())
        if not now.left:
            return now
        time.sleep(SECONDS)

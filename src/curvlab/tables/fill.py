"""Fill tables within a budget of hours, beside other work, and take over what was checked.

Runs are made in a clone of the repository at one commit, so that work on the code does not disturb
them, by one thread at the lowest priority. A fill that was killed goes on with the same command.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.results.identity import identity_hash, older
from curvlab.results.result import CONCLUSIVE, Result, read_result, result_files
from curvlab.tables.planning import planned_seeds

CURVES = "metrics.csv"
"""What heat maps draw of a run."""

BESIDE = ("routing.csv",)
"""Files of a run that a table's pictures read, kept where the cell has had them."""

RESULTS = Path("docs", "results", "tables")
"""Where a repository keeps checked results."""

WORDS = ("trainer.threads=1", "trainer.progress=false", "trainer.plots=false")
_HOUR = 3600.0  # seconds


@dataclass
class Taken:
    """What `take_over` did.

    Attributes:
        added: runs that are new, or replace another one, as folders below the results.
        refused: runs that were not taken over, with the reason.
    """

    added: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """A line for each table, and one for each run that was refused."""
        tables = ["/".join(run.split("/")[:2]) for run in self.added]
        lines = [f"{table}: {tables.count(table)} runs added" for table in sorted(set(tables))]
        lines += [f"{run}: not taken over, {reason}" for run, reason in self.refused.items()]
        return "\n".join(lines or ["nothing was added"]) + "\n"


def take_over(source: Path, into: Path, known: Path) -> Taken:
    """Copy finished runs of a folder of results to another one, after a check of each.

    A run is refused if it has not ended, if its identity is not that of its configuration, or if a
    class of it has another revision today. A finished run is never replaced by one of the same
    identity.

    Args:
        source: the folder of all tables' runs, such as `outputs/tables`.
        into: the one they are copied to, such as `docs/results/tables`.
        known: the results that `source` began with, which are no news.
    """
    taken = Taken()
    for path in result_files(source):
        run = path.parent.relative_to(source)
        new, old = read_result(path.parent), read_result(into / run)
        if new is None:
            taken.refused[str(run)] = "its result cannot be read"
            continue
        if new == read_result(known / run):
            continue
        if old and old.config_hash == new.config_hash and old.status in CONCLUSIVE:
            continue
        reason = _objection(new)
        if reason:
            taken.refused[str(run)] = reason
            continue
        (into / run).mkdir(parents=True, exist_ok=True)
        new.save(into / run)
        for name in (CURVES, *BESIDE):
            had = name == CURVES or (into / run / name).exists()
            if had and (path.parent / name).exists():
                shutil.copyfile(path.parent / name, into / run / name)
        taken.added.append(str(run))
    return taken


def _objection(result: Result) -> str:
    """Why a result is not taken over; empty if it is."""
    if result.status not in CONCLUSIVE:
        return f"it ended as {result.status}: {result.error}"[:300]
    if identity_hash(result.config, result.revisions) != result.config_hash:
        return "its identity is not that of its configuration"
    aged = older(result.config, result.revisions)
    return f"it is of {', '.join(aged)}, which has changed" if aged else ""


def fill(
    root: Path,
    tables: Sequence[str],
    hours: float,
    words: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> Taken:
    """Run the unfinished cells of tables, the first seed of all before the second of any.

    Args:
        root: of the repository, a git checkout whose last commit is run.
        tables: in order of their value, such as `fpst/fig3`.
        hours: after which the run at work is stopped; the same command resumes it.
        words: of every command, such as `model=fpst`.
        say: receives a line for each command.

    Raises:
        UsageError: the repository is no git checkout.
    """
    end = time.monotonic() + hours * _HOUR
    results = root / RESULTS
    clone = _clone(root, results)
    commands = [
        ["-m", f"table={table}", f"seed={seed}", *words, *WORDS]
        for table, seed in _in_turn({t: planned_seeds(root / "configs", t) for t in tables})
    ]
    with suppress(KeyboardInterrupt):
        for command in commands:
            left = end - time.monotonic()
            if left <= 0:
                break
            say(f"{left / _HOUR:.1f} h left: python train.py {' '.join(command)}")
            _run(clone, command, left)
    return take_over(clone / "outputs" / "tables", results, clone / RESULTS)


def _in_turn(seeds: dict[str, list[int]]) -> list[tuple[str, int]]:
    """The first seed of each table, then the second of each, and so on."""
    rounds = range(max(map(len, seeds.values()), default=0))
    return [(table, own[i]) for i in rounds for table, own in seeds.items() if i < len(own)]


def _clone(root: Path, results: Path) -> Path:
    """A clone of the last commit below `outputs/fill`, with the results that there are."""
    git = ["git", "-C", str(root)]
    words = [*git, "rev-parse", "HEAD"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        raise UsageError(f"{root} is no git checkout: clone the repository to fill its tables")
    commit = found.stdout.strip()
    clone = root / "outputs" / "fill" / commit[:12]
    if not (clone / "outputs" / "tables").is_dir():
        shutil.rmtree(clone, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(root), str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
        (clone / "outputs").mkdir(exist_ok=True)
        if results.is_dir():
            shutil.copytree(results, clone / "outputs" / "tables")
        (clone / "outputs" / "tables").mkdir(exist_ok=True)
    return clone


def _run(clone: Path, command: Sequence[str], seconds: float) -> None:
    """Run a sweep in the clone; stop it after `seconds`."""
    here = {"PYTHONPATH": str(clone / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        ["nice", "-n", "19", sys.executable, "train.py", *command],
        cwd=clone,
        env=os.environ | here,
        start_new_session=True,
    )
    with suppress(OSError):  # Linux weighs sessions before processes
        Path(f"/proc/{process.pid}/autogroup").write_text("19", encoding="ascii")
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        process.wait()

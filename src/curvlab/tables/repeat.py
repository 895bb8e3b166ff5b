"""Repetitions of one cheap stored run for each table and model, and their scores."""

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.identity import outdated_classes
from curvlab.results.result import git_commit, load, result_files
from curvlab.statistics import Summary, student, summarise

REPEATED = "repeated.csv"
"""File of repeated runs, next to the folder of all tables' results."""

DIGITS = "to the digit"  # equal scores
ROUNDING = "by rounding"  # a difference within the 95 % limit of two seeds
NOT = "not"  # a larger difference

MEASURES = ("_ms", "_mb", "_s")  # endings of times and memory, which differ in each run
COLUMNS = (
    "table",
    "model",
    "run",
    "stored",
    "again",
    "difference",
    "std",
    "seeds",
    "limit",
    "word",
    "commit",
)


@dataclass(frozen=True)
class Stored:
    """A stored run and the spread of its cell's scores over seeds."""

    table: str
    model: str
    run: str  # its folder below the table
    score: float
    spread: Summary  # of the cell's scores; NaN with fewer than three seeds
    seconds: float
    result: dict[str, Any]


def cheapest_runs(results: Path, selection: Sequence[str] = ()) -> list[Stored]:
    """The cheapest run of each table and model, preferably in a cell with a known spread.

    Only runs on a CPU that the current classes would repeat are considered. The cheapest run comes
    first. `selection` restricts them to tables or cells, such as `fpst/table1/actor/gcn`.
    """
    names = tuple(f"{name.strip('/')}/" for name in selection)
    cells: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    files = {path: path.relative_to(results).as_posix() for path in result_files(results)}
    for name in names:
        if not any(file.startswith(name) for file in files.values()):
            raise UsageError(
                f"there is no stored run of {name[:-1]}: name a table or a cell, such as "
                "fpst/table1/actor/gcn"
            )
    for path, file in files.items():
        if names and not file.startswith(names):
            continue
        *table, cell, run = _parts(path, results)
        result = load(path)
        if _can_be_repeated(result):
            cells["/".join(table), result["model"], cell].append((f"{cell}/{run}", result))
    by_cell: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for (table_name, model, _), runs in cells.items():
        scores = [result["score"] for _, result in runs]
        spread = summarise(scores)
        for name, result in runs:
            seconds = float(result["wall_seconds"])
            one = Stored(table_name, model, name, result["score"], spread, seconds, result)
            by_cell[table_name, model].append(one)

    def preference(run: Stored) -> tuple[bool, float]:
        return isnan(run.spread.std), run.seconds

    cheapest = [min(runs, key=preference) for runs in by_cell.values()]
    return sorted(cheapest, key=lambda run: run.seconds)


def _parts(path: Path, results: Path) -> tuple[str, str, str, str]:
    parts = path.parent.relative_to(results).parts
    return parts[0], parts[1], "/".join(parts[2:-1]), parts[-1]


def _can_be_repeated(result: dict[str, Any]) -> bool:
    """Whether a result is of the current classes, ran on CPU, and has a reproducible score."""
    if result["status"] != "finished" or result.get("score") is None:
        return False
    if result.get("device") != "cpu" or not result.get("wall_seconds"):
        return False
    if any(name.endswith(MEASURES) for name in result["metrics"].get("test", {})):
        return False
    return not outdated_classes(result["config"], result.get("revisions") or {})


def limit(spread: Summary) -> float:
    """Difference that two runs of different seeds exceed in 5 % of cases, `t s sqrt(2)`.

    s is the standard deviation over n seeds, and t is Student's quantile for n - 1 degrees of
    freedom. Training that amplifies rounding draws another run, as another seed does.
    """
    return float(student(spread.seeds - 1) * spread.std * sqrt(2))


def word_of(stored: float, repeated: float, most: float) -> str:
    """One of the three words; without a known limit, any difference is `NOT`."""
    if stored == repeated:
        return DIGITS
    return ROUNDING if abs(repeated - stored) < most else NOT


def repeat_row(run: Stored, repeated: float) -> dict[str, Any]:
    """A row that compares a stored run with its repetition."""
    difference = repeated - run.score
    most = limit(run.spread)
    return {
        "table": run.table,
        "model": run.model,
        "run": run.run,
        "stored": repr(run.score),
        "again": repr(repeated),
        "difference": f"{difference:+.4g}" if difference else "0",
        "std": "" if isnan(run.spread.std) else f"{run.spread.std:.4g}",
        "seeds": run.spread.seeds,
        "limit": "" if isnan(most) else f"{most:.4g}",
        "word": word_of(run.score, repeated, most),
        "commit": (git_commit() or "")[:8],
    }


def read_repeated(results: Path) -> list[dict[str, str]]:
    """Stored comparisons; empty without a file."""
    path = results.resolve().parent / REPEATED
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and tuple(rows[0]) != COLUMNS:
        raise UsageError(f"{path} must be a file that `tables repeat` has written")
    return rows


def write_repeated(results: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write comparisons, sorted; a new comparison of a cell replaces the stored one."""
    by_cell = {}
    for row in [*read_repeated(results), *rows]:
        cell = str(Path(row["run"]).parent)
        by_cell[row["table"], cell] = row
    path = results.resolve().parent / REPEATED
    table = pd.DataFrame([row for _, row in sorted(by_cell.items())], columns=list(COLUMNS))
    atomic_write(path, table.to_csv(index=False, lineterminator="\n"))
    return path


def summary(rows: Sequence[dict[str, Any]], runs: int) -> str:
    """Number of runs by the three words, in a sentence."""
    words = [row["word"] for row in rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in (DIGITS, ROUNDING, NOT))
    pairs = len({(row["table"], row["model"]) for row in rows})
    return (
        f"{pairs} of {runs} pairs of a table and a model were repeated, in {len(rows)} runs: "
        f"{counts}"
    )

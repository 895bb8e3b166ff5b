"""One cheap stored run of every table and model, and the scores of its repetition."""

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.results.identity import outdated_classes
from curvlab.results.result import git_commit, load, result_files
from curvlab.statistics import FEWEST

REPEATED = "repeated.csv"
"""The stored runs that were run again, next to the folder of all tables' results."""

DIGITS, ROUNDING, NOT = "to the digit", "by rounding", "not"
"""Equal scores; a difference below one standard deviation over seeds; a larger one."""

MEASURES = ("_ms", "_mb", "_s")  # times and memory, which no run repeats
COLUMNS = (
    "table",
    "model",
    "run",
    "stored",
    "again",
    "difference",
    "std",
    "ratio",
    "word",
    "commit",
)


@dataclass(frozen=True)
class Stored:
    """A stored run and the standard deviation of its cell's scores over seeds."""

    table: str
    model: str
    run: str  # its folder below the table
    score: float
    std: float  # NaN with fewer than three seeds
    seconds: float
    result: dict[str, Any]


def cheapest_runs(results: Path, cells_named: Sequence[str] = ()) -> list[Stored]:
    """The cheapest run of each table and model, preferably of a cell whose spread is known.

    Only runs on a CPU that the current classes would repeat are considered; the cheapest comes
    first. `cells_named` restricts them to tables or cells, such as `fpst/table1/actor/gcn`.
    """
    names = tuple(f"{name.strip('/')}/" for name in cells_named)
    cells: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path in result_files(results):
        if names and not f"{path.relative_to(results).as_posix()}".startswith(names):
            continue
        *table, cell, run = _parts(path, results)
        result = load(path)
        if _can_be_repeated(result):
            cells["/".join(table), result["model"], cell].append((f"{cell}/{run}", result))
    by_cell: dict[tuple[str, str], list[Stored]] = defaultdict(list)
    for (table_name, model, _), runs in cells.items():
        scores = [result["score"] for _, result in runs]
        std = float(np.std(scores, ddof=1)) if len(scores) >= FEWEST else nan
        for name, result in runs:
            seconds = float(result["wall_seconds"])
            one = Stored(table_name, model, name, result["score"], std, seconds, result)
            by_cell[table_name, model].append(one)
    chosen = [min(runs, key=lambda run: (isnan(run.std), run.seconds)) for runs in by_cell.values()]
    return sorted(chosen, key=lambda run: run.seconds)


def _parts(path: Path, results: Path) -> tuple[str, str, str, str]:
    parts = path.parent.relative_to(results).parts
    return parts[0], parts[1], "/".join(parts[2:-1]), parts[-1]


def _can_be_repeated(result: dict[str, Any]) -> bool:
    """Whether a result is of today's code, ran on a processor, and has a score that repeats."""
    if result["status"] != "finished" or result.get("score") is None:
        return False
    if result.get("device") != "cpu" or not result.get("wall_seconds"):
        return False
    if any(name.endswith(MEASURES) for name in result["metrics"].get("test", {})):
        return False
    return not outdated_classes(result["config"], result.get("revisions") or {})


def word_of(stored: float, again: float, std: float) -> str:
    """One of the three words; without a known spread any difference is `not`."""
    if stored == again:
        return DIGITS
    return ROUNDING if abs(again - stored) < std else NOT


def row_of(one: Stored, again: float) -> dict[str, Any]:
    """The comparison of a stored run with its repetition."""
    difference = again - one.score
    ratio = abs(difference) / one.std if one.std else nan
    return {
        "table": one.table,
        "model": one.model,
        "run": one.run,
        "stored": repr(one.score),
        "again": repr(again),
        "difference": f"{difference:+.4g}" if difference else "0",
        "std": "" if isnan(one.std) else f"{one.std:.4g}",
        "ratio": "" if isnan(ratio) else f"{ratio:.2f}",
        "word": word_of(one.score, again, one.std),
        "commit": (git_commit() or "")[:8],
    }


def read_repeated(results: Path) -> list[dict[str, str]]:
    """The stored comparisons; none without a file."""
    path = results.resolve().parent / REPEATED
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and tuple(rows[0]) != COLUMNS:
        raise UsageError(f"{path} must be a file that `tables repeat` has written")
    return rows


def write_repeated(results: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write comparisons, sorted; one of a cell replaces an earlier one."""
    every = [*read_repeated(results), *rows]
    by_cell = {(row["table"], str(Path(row["run"]).parent)): row for row in every}
    path = results.resolve().parent / REPEATED
    table = pd.DataFrame([row for _, row in sorted(by_cell.items())], columns=list(COLUMNS))
    atomic_write(path, table.to_csv(index=False, lineterminator="\n"))
    return path


def summary(rows: Sequence[dict[str, Any]], runs: int) -> str:
    """How many runs repeat, in a sentence."""
    words = [row["word"] for row in rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in (DIGITS, ROUNDING, NOT))
    pairs = len({(row["table"], row["model"]) for row in rows})
    return (
        f"{pairs} of {runs} pairs of a table and a model were repeated, in {len(rows)} runs: "
        f"{counts}"
    )

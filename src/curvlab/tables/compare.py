"""Two folders of results side by side: the cells of tables whose numbers differ between them."""

from collections.abc import Iterable
from math import isnan
from pathlib import Path

import pandas as pd

from curvlab.tables.report import build_report
from curvlab.tables.spec import TableSpec

COLUMNS = ("table", "row", "column", "before", "now", "change", "paper")


def compare(specs: Iterable[TableSpec], before: Path, now: Path) -> pd.DataFrame:
    """Return one row for each cell whose finished runs differ between two folders of results.

    A cell differs if its mean or its number of finished runs does. A cell that only one of the
    folders has counts.

    Args:
        specs: The tables to compare. Panels of a figure are compared one by one.
        before: The folder of all tables' earlier results.
        now: The folder of all tables' results of today.

    Returns:
        `table`, `row` and `column` (as they are printed), `before_mean`, `before_runs`, `now_mean`,
        `now_runs`, `change` (of the mean; NaN for a cell that one folder lacks), `paper` (the
        printed mean; NaN where there is none), `decimals` (of the printed numbers).
    """
    found = []
    for spec in specs:
        old, new = (build_report(spec, folder) for folder in (before, now))
        keys = ["row", "column"]
        earlier = old.cells[[*keys, "our_mean", "seeds"]]
        cells = new.cells.merge(earlier, on=keys, how="outer", suffixes=("", "_before"))
        means = cells[["our_mean", "our_mean_before"]].fillna(float("inf"))
        same = means["our_mean"] == means["our_mean_before"]
        runs = cells[["seeds", "seeds_before"]].fillna(0)
        changed = cells[~(same & (runs["seeds"] == runs["seeds_before"]))]
        labels = old.labels | new.labels
        for _, cell in changed.iterrows():
            found.append(
                {
                    "table": spec.name,
                    "row": labels["row", cell["row"]],
                    "column": labels["column", cell["column"]],
                    "before_mean": cell["our_mean_before"],
                    "before_runs": 0 if isnan(cell["seeds_before"]) else int(cell["seeds_before"]),
                    "now_mean": cell["our_mean"],
                    "now_runs": 0 if isnan(cell["seeds"]) else int(cell["seeds"]),
                    "change": cell["our_mean"] - cell["our_mean_before"],
                    "paper": cell["paper_mean"],
                    "decimals": new.decimals,
                }
            )
    return pd.DataFrame(found)


def comparison(specs: Iterable[TableSpec], before: Path, now: Path) -> str:
    """Return `compare` as a Markdown table, numbers with the digits that the paper prints."""
    cells = compare(specs, before, now)
    if cells.empty:
        return "No cell differs.\n"
    rows = [COLUMNS, tuple("---" for _ in COLUMNS)]
    for _, cell in cells.iterrows():
        digits = int(cell["decimals"])
        rows.append(
            (
                cell["table"],
                cell["row"],
                cell["column"],
                _mean(cell["before_mean"], cell["before_runs"], digits),
                _mean(cell["now_mean"], cell["now_runs"], digits),
                "" if isnan(cell["change"]) else f"{cell['change']:+.{digits}f}",
                "" if isnan(cell["paper"]) else f"{cell['paper']:.{digits}f}",
            )
        )
    return "".join("| " + " | ".join(map(str, row)) + " |\n" for row in rows)


def _mean(mean: float, runs: int, digits: int) -> str:
    return f"{mean:.{digits}f} ({runs})" if runs else "-"

"""Cells of a table: published and reproduced numbers, differences, verdicts and ranks."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import isnan, nan
from typing import Any

import pandas as pd

from curvlab.statistics import (
    NOT_RUN,
    Draw,
    IntervalKind,
    Summary,
    half_digit,
    judge_number,
    metric_margin,
    published_std,
    split_means,
    summarise,
    welch_pm,
)
from curvlab.tables.runs import LOST, STATUSES
from curvlab.tables.spec import Better, Coordinate, TableSpec

LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"  # marks of protocols
FEWEST_RANKED = 3  # fewest methods with both numbers for ranks

WELCH = "≈"  # sign of Welch's interval of the difference of two means
NEXT_DRAW = "‡"
"""Sign of the interval of one more value.

It judges numbers of papers with one unknown draw of a split of which we have several draws.
"""

FULL_PRECISION = "32-true"  # Lightning's default

Cell = tuple[Coordinate, Coordinate]
Record = dict[Any, Any]
"""A run or a published number as a mapping."""


def make_cells(
    spec: TableSpec,
    coordinates: tuple[Sequence[Coordinate], Sequence[Coordinate]],
    paper: pd.DataFrame,
    runs: pd.DataFrame,
    replaced: pd.DataFrame,
    kind: IntervalKind,
) -> pd.DataFrame:
    """One row for each cell, see `curvlab.tables.report.Report`, without ranks.

    Args:
        spec: The table.
        coordinates: Rows and columns.
        paper: Published numbers.
        runs: Runs of the cells.
        replaced: Runs of another source that are shown next to them.
        kind: Kind of our spread.
    """
    published = {cell: records[0] for cell, records in _by_cell(paper).items()}
    our_runs = _by_cell(runs)
    other_runs = _by_cell(replaced)
    letters = letters_of(pd.concat([runs, replaced]))
    records = []
    for cell in product(*coordinates):
        number = published.get(cell, {})
        records.append(_cell(spec, cell, number, our_runs[cell], other_runs[cell], kind, letters))
    return pd.DataFrame(records).astype({"row": object, "column": object})


def _by_cell(records: pd.DataFrame) -> dict[Cell, list[Record]]:
    records_by_cell = defaultdict(list)
    for record in records.to_dict("records"):
        records_by_cell[record["row"], record["column"]].append(record)
    return records_by_cell


def _cell(
    spec: TableSpec,
    cell: Cell,
    published: Mapping[Any, str],
    runs: list[Record],
    replaced: list[Record],
    kind: IntervalKind,
    letters: Mapping[str, str],
) -> dict[str, Any]:
    row, column = cell
    first = runs[0] if runs else {"split": "", "draw": "none", "shipped": None, "config": {}}
    trainer = first["config"].get("trainer") or {}
    deviations_of_runs = {run["deviation"] for run in runs}
    scores = {
        "our": _scores(runs, "value"),
        "second": _scores(runs, "second"),
        "other": _scores(replaced, "value"),
    }
    numbers = {name: split_means(of_kind) for name, of_kind in scores.items()}
    summaries = {name: summarise(values, kind) for name, values in numbers.items()}
    ours = summaries["our"]

    difference = nan
    difference_pm = nan
    rule = ""
    paper_mean = float(published.get("mean") or nan)
    if first["draw"] != "own" and not any(deviations_of_runs):
        difference = ours.mean - paper_mean
    if not isnan(difference):
        by_next_draw = first["draw"] == "own_each" and not spec.report.redrawn
        difference_pm, rule = _half_width(ours, published, by_next_draw)
    if isnan(difference_pm):
        rule = ""

    planned = 0
    for run in runs:
        planned += run["status"] == "finished" and run["seed"] in spec.planned_seeds
    status = _status(spec, cell, runs, ours, planned)
    margin = spec.report.scale * metric_margin(spec.report.metric)
    verdict = NOT_RUN
    if status != "not run":
        verdict = judge_number(difference, difference_pm, margin)
    ended = Counter(run["status"] for run in runs)
    return {
        "row": row,
        "column": column,
        "planned_seeds": planned,
        "split": first["split"],
        "draw": first["draw"],
        "precision": str(trainer.get("precision", FULL_PRECISION)) if runs else "",
        "source": {True: "shipped", False: "own", None: ""}[first["shipped"]],
        "deviation": "; ".join(sorted(deviations_of_runs - {""})),
        "mark": _marks(deviations_of_runs, letters),
        "steps": max((run["steps"] for run in runs), default=0),
        "patience": max((run["patience"] for run in runs if run["patience"] > 0), default=nan),
        **{status: ended[status] for status in LOST},
        "other_mark": _marks((run["deviation"] for run in replaced), letters),
        "seeds": ours.seeds,
        "runs": len(scores["our"]),
        **{f"{name}_seeds": summaries[name].seeds for name in ("second", "other")},
        **{f"{name}_runs": len(scores[name]) for name in ("second", "other")},
        **{f"{name}_mean": summary.mean for name, summary in summaries.items()},
        **{f"{name}_pm": summary.pm for name, summary in summaries.items()},
        "our_std": ours.std,
        **{f"{name}_low": min(values, default=nan) for name, values in numbers.items()},
        **{f"{name}_high": max(values, default=nan) for name, values in numbers.items()},
        "metric": spec.report.metric,
        "paper_mean": paper_mean,
        "paper_pm": float(published.get("pm") or nan),
        "our_t95": ours.student_pm,
        "difference": difference,
        "difference_pm": difference_pm,
        "within": None if isnan(difference_pm) else abs(difference) <= difference_pm,
        "rule": rule,
        "verdict": verdict,
        "margin": margin,
        "counted": column not in spec.report.repeated,
        "status": status,
    }


def _scores(runs: list[Record], key: str) -> dict[Draw, float]:
    """Values of runs that have one."""
    return {run["drawn"]: run[key] for run in runs if not isnan(run[key])}


def _half_width(
    ours: Summary, published: Mapping[Any, str], by_next_draw: bool
) -> tuple[float, str]:
    """Half width of the interval of our mean minus the published one, and the sign of its rule."""
    count = float(published.get("runs") or nan)
    std = published_std(float(published.get("pm") or nan), published["pm_kind"], count)
    if not by_next_draw:
        return welch_pm(ours, std, count, half_digit(published["mean"])), WELCH
    if isnan(std):
        return nan, ""
    return ours.next_pm, NEXT_DRAW  # the published number is one more value of ours


def _status(spec: TableSpec, cell: Cell, runs: list[Record], ours: Summary, planned: int) -> str:
    """Status of a cell; `planned` is the number of finished runs with planned seeds."""
    row, column = cell
    if ours.seeds:
        return "finished" if planned == len(spec.planned_seeds) else "partial"
    if runs:
        ended = Counter(run["status"] for run in runs)
        return max(STATUSES, key=lambda status: ended[status])
    if row in spec.planned_rows and column in spec.planned_columns:
        return "not run"
    return "cited" if row in spec.report.cited else "missing"


def _marks(deviating: Iterable[str], letters: Mapping[str, str]) -> str:
    return "".join(letters[text] for text in sorted({*deviating} - {""}))


def letters_of(runs: pd.DataFrame) -> dict[str, str]:
    """The mark of each protocol that deviates from the table's."""
    texts = sorted(set(runs["deviation"]) - {""})
    count = len(LETTERS)
    return {text: LETTERS[i % count] * (1 + i // count) for i, text in enumerate(texts)}


def deviations(runs: pd.DataFrame) -> dict[str, str]:
    """For each mark, a sentence on the runs that deviate from the table's protocol."""
    sentences = {}
    counts = runs["deviation"].value_counts()
    for text, mark in letters_of(runs).items():
        share = "" if counts[text] == len(runs) else f", {counts[text]} of {len(runs)} runs"
        sentences[mark] = f"Not the table's protocol{share}: {text}."
    return sentences


def add_ranks(cells: pd.DataFrame, decimals: int, better: Better) -> pd.DataFrame:
    """Add the places of all numbers of a column, and the ranks of numbers with a difference."""
    has_order = better != "neither"
    ranked = cells["difference"].notna() & has_order
    counts = ranked.groupby(cells["column"]).transform("sum")
    ranked &= counts >= FEWEST_RANKED
    lower = better == "lower"
    for name in ("our", "paper"):
        means = cells[f"{name}_mean"].map(f"{{:.{decimals}f}}".format).astype(float)
        listed = means.where((cells["deviation"] == "") | (name == "paper"))
        if not has_order:
            listed = listed * nan
        columns = listed.groupby(cells["column"])
        place = columns.rank("min", ascending=lower)
        marked = (place <= 2) & (place < columns.transform("count"))
        cells[f"{name}_place"] = place.where(marked, 0).astype(int)
        of_ranked = means.where(ranked).groupby(cells["column"])
        cells[f"{name}_rank"] = of_ranked.rank("min", ascending=lower)
        cells[f"{name}_order"] = of_ranked.rank()
    cells["ranked"] = counts.where(counts >= FEWEST_RANKED, 0).astype(int)
    spearman = {}
    for column, of_column in cells.groupby("column", sort=False):
        spearman[column] = nan
        if of_column["ranked"].any():
            spearman[column] = of_column["our_order"].corr(of_column["paper_order"])
    cells["spearman"] = cells["column"].map(spearman).astype(float)
    return cells.drop(columns=["our_order", "paper_order"])

"""A table as data: each cell's printed and reproduced number, what differs, what is missing."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.statistics import (
    PRINTED_DEVIATIONS,
    IntervalKind,
    Summary,
    bootstrap_interval,
    difference_pm,
    half_a_digit,
    printed_std,
    summarise,
)
from curvlab.tables.captions import caption, circumstances, footnotes
from curvlab.tables.collect import STATUSES, collect
from curvlab.tables.departures import letters, with_departures
from curvlab.tables.draws import Draw, draw_of
from curvlab.tables.protocols import one_protocol_per_cell
from curvlab.tables.ranking import with_ranks
from curvlab.tables.spec import Better, Coordinate, TableSpec, paper_numbers


@dataclass(frozen=True)
class Report:
    """A table, ready to be written down.

    Attributes:
        title: What the paper calls it.
        cells: One row a cell: `metric`, `row`, `column`, `paper_mean`, `paper_pm`, `our_mean`,
            `our_pm` (a deviation if the paper's is one, else half an interval), `our_std`,
            `our_t95` (half width of Student's interval), `our_bootstrap_low` and
            `our_bootstrap_high` (ends of the bootstrap's), `our_low` and `our_high` (the least and
            the greatest value), `second_mean`, `second_pm`, `second_low`, `second_high` and
            `second_seeds` (the same of the second number), `seeds` (finished runs),
            `planned_seeds` (those of them whose seeds the sweep has), `draw` (see `Draw`),
            `departure` and `mark` (of another protocol than the table's), `difference` (ours -
            paper; empty for another protocol and for one draw of a split that is not the paper's),
            `difference_pm` (half of its 95 % interval; NaN where one side's spread is unknown),
            `within` (whether that holds 0; empty where it cannot be judged),
            `status`, `steps` (the longest run's), `patience` (steps without improvement after which
            runs end, NaN for never), the number of runs that ended as `diverged`, `failed` and
            `out_of_memory`, and what `with_ranks` adds.
            `status` is `finished` (all seeds of the sweep), `partial`, how the runs ended where
            none finished, `not run` (planned), `cited` (the paper has its number from elsewhere),
            or `missing` (not planned: the paper has it and this library does not).
        labels: How rows and columns are written, by coordinate.
        decimals: Digits after the point, as the paper prints them.
        better: Which numbers are the best.
        second: What the second number is; empty where there is none.
        caption: The protocol, one sentence a line.
        footnotes: What a reader must know about single cells.
    """

    title: str
    cells: pd.DataFrame
    labels: dict[tuple[str, Coordinate], str]
    decimals: int
    better: Better
    second: str
    caption: list[str]
    footnotes: list[str]

    @property
    def rows(self) -> list[Coordinate]:
        """Row coordinates in printed order."""
        return list(dict.fromkeys(self.cells["row"]))

    @property
    def columns(self) -> list[Coordinate]:
        """Column coordinates in printed order."""
        return list(dict.fromkeys(self.cells["column"]))


def build_report(spec: TableSpec, results: Path) -> Report:
    """Join the paper's numbers with the runs below a table's directory.

    Args:
        spec: The table.
        results: The folder of all tables' results; the runs are read below `results / spec.name`.
    """
    return report_of(spec, collect(results / spec.name, spec.report), results)


def report_of(spec: TableSpec, collected: pd.DataFrame, results: Path) -> Report:
    """Join the paper's numbers with runs below `results`, as `collect` returns them."""
    paper = paper_numbers(spec.report, spec.folder)
    runs, left_out = one_protocol_per_cell(with_departures(spec, collected, results))
    marks = letters(runs)
    rows = _in_order(paper["row"], spec.planned_rows, runs["row"])
    columns = _in_order(paper["column"], spec.planned_columns, runs["column"])
    kind = _interval_kind(paper)
    printed, own = (dict(iter(f.groupby(["row", "column"], sort=False))) for f in (paper, runs))
    none = paper.iloc[:0], runs.iloc[:0]
    cells = pd.DataFrame(
        [
            _cell(spec, cell, printed.get(cell, none[0]), own.get(cell, none[1]), kind, marks)
            for cell in itertools.product(rows, columns)
        ]
    ).astype({"row": object, "column": object})
    labels = {("row", row): spec.label(spec.report.rows, row) for row in rows}
    labels |= {("column", column): spec.label(spec.report.columns, column) for column in columns}
    decimals = max((len(mean.partition(".")[2]) for mean in paper["mean"]), default=2)
    cells = with_ranks(cells, decimals, spec.report.better)
    return Report(
        title=spec.report.title,
        cells=cells,
        labels=labels,
        decimals=decimals,
        better=spec.report.better,
        second=spec.report.second.label if spec.report.second else "",
        caption=[
            *caption(spec, cells, runs, paper, kind),
            *circumstances(spec, cells, runs, labels),
        ],
        footnotes=[*spec.report.notes, *footnotes(cells, paper, left_out, labels)],
    )


def _in_order(*coordinates: Iterable[Coordinate]) -> list[Coordinate]:
    """Each coordinate once: numbers sorted, names in the paper's order, then the sweep's."""
    unique = list(dict.fromkeys(value for values in coordinates for value in values))
    numbers = [value for value in unique if isinstance(value, int | float)]
    return [*sorted(numbers)] if len(numbers) == len(unique) else unique


def _interval_kind(paper: pd.DataFrame) -> IntervalKind:
    """Our spread is what the paper says that its own is, and Student's interval else."""
    if paper["pm_kind"].isin(PRINTED_DEVIATIONS).any():
        return "std"
    return "ci95" if (paper["pm_kind"] == "ci95").any() else "student"


def _cell(
    spec: TableSpec,
    cell: tuple[Coordinate, Coordinate],
    printed: pd.DataFrame,
    own: pd.DataFrame,
    kind: IntervalKind,
    marks: Mapping[str, str],
) -> dict[str, Any]:
    """A line of `Report.cells` from the paper's number of the cell and its own runs."""
    paper_mean = _number(printed, "mean")
    paper_pm = _number(printed, "pm")
    finished = own[own["status"] == "finished"]
    values, seconds = finished["value"].tolist(), finished["second"].dropna().tolist()
    planned_seeds = int(finished["seed"].isin(spec.planned_seeds).sum())
    ours, bootstrap = summarise(values, kind), bootstrap_interval(values)
    second = summarise(seconds, kind)
    ended = Counter(own["status"])
    draw = draw_of(own["config"].iloc[0]) if len(own) else Draw.none
    departs = sorted({text for text in own["departure"] if text})
    difference = ours.mean - paper_mean if draw.comparable and not departs else nan
    alone = draw is Draw.own_each and not spec.report.redrawn
    pm = _difference_pm(ours, printed, alone) if not isnan(difference) else nan
    return {
        "metric": spec.report.metric,
        "row": cell[0],
        "column": cell[1],
        "paper_mean": paper_mean,
        "paper_pm": paper_pm,
        "our_mean": ours.mean,
        "our_pm": ours.pm,
        "our_std": ours.std,
        "our_t95": ours.student_pm,
        "our_bootstrap_low": bootstrap[0],
        "our_bootstrap_high": bootstrap[1],
        "our_low": min(values, default=nan),
        "our_high": max(values, default=nan),
        "second_mean": second.mean,
        "second_pm": second.pm,
        "second_low": min(seconds, default=nan),
        "second_high": max(seconds, default=nan),
        "second_seeds": second.seeds,
        "seeds": ours.seeds,
        "planned_seeds": planned_seeds,
        "draw": draw.name,
        "departure": "; ".join(departs),
        "mark": "".join(marks[text] for text in departs),
        "difference": difference,
        "difference_pm": pm,
        "within": None if isnan(pm) else abs(difference) <= pm,
        "status": _status(ended, planned_seeds, spec, cell),
        "steps": int(own["steps"].max()) if len(own) else 0,
        "patience": float(own["patience"].max()) if len(own) else nan,
        **{status: ended[status] for status in STATUSES[1:]},
    }


def _difference_pm(ours: Summary, printed: pd.DataFrame, alone: bool) -> float:
    """Half of the difference's 95 % interval; `alone`: the paper has one draw of the split.

    Then its number is one more value of ours: how far another draw is, only ours says.
    """
    runs = _number(printed, "runs")
    std = printed_std(_number(printed, "pm"), printed["pm_kind"].iloc[0], runs)
    if alone:
        return nan if isnan(std) else ours.next_pm
    return difference_pm(ours, std, runs, half_a_digit(printed["mean"].iloc[0]))


def _status(
    ended: Counter[str], done: int, spec: TableSpec, cell: tuple[Coordinate, Coordinate]
) -> str:
    if ended["finished"]:
        return "finished" if done == len(spec.planned_seeds) else "partial"
    if ended:
        return ended.most_common(1)[0][0]
    if cell[0] in spec.planned_rows and cell[1] in spec.planned_columns:
        return "not run"
    return "cited" if cell[0] in spec.report.cited else "missing"


def _number(printed: pd.DataFrame, key: str) -> float:
    return float(printed[key].iloc[0]) if len(printed) and printed[key].iloc[0] else nan

"""What stands where in a printed table: the same lines for the terminal, Markdown and LaTeX.

Each row of a table takes up to six lines, `paper`, `ours`, a second number of ours, `difference`,
`rank` and `lost` (runs that did not finish), so that a number stands right above the one it is
compared with. The last row says how well the order of the methods agrees.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from curvlab.tables.ranking import marks
from curvlab.tables.report import Report
from curvlab.tables.spec import Better, Coordinate

Cell = Mapping[Any, Any]
"""One row of `Report.cells`."""

UNTRIED = ("not run", "cited", "missing")
"""What is said of a cell without a run."""

LOST = {"diverged": "diverged", "failed": "failed", "out_of_memory": "out of memory"}


@dataclass(frozen=True)
class Entry:
    """One entry: a number with its spread and a remark, or only words.

    Attributes:
        mean: The number as printed; empty for words.
        pm: Its spread as printed; empty if there is none.
        remark: What follows the number, or the words.
        rank: 1 for the best number of its column and kind, 2 for the second, else 0.
        grey: Whether it is of another protocol than the table's.
    """

    mean: str = ""
    pm: str = ""
    remark: str = ""
    rank: int = 0
    grey: bool = False

    def __bool__(self) -> bool:
        return bool(self.mean or self.remark)


@dataclass(frozen=True)
class Line:
    """One printed line: the row's label on its first line only, what it is, one entry a column."""

    label: str
    kind: str
    name: str
    entries: list[Entry]


def layout(report: Report, columns: list[Coordinate]) -> list[list[Line]]:
    """For each row of the table, its lines over the given columns; empty lines are left out."""
    best = {k: marks(report.cells, k, report.decimals, report.better) for k in ("paper", "our")}
    by_place = {(cell["row"], cell["column"]): cell for cell in report.cells.to_dict("records")}
    rows = []
    for row in report.rows:
        cells = [by_place[row, column] for column in columns]
        kinds = {
            "paper": [_paper(cell, report, best["paper"]) for cell in cells],
            "ours": [_ours(cell, report, best["our"]) for cell in cells],
            "second": [_second(cell, report) for cell in cells],
            "difference": [_difference(cell, report) for cell in cells],
            "rank": [_rank(cell) for cell in cells],
            "lost": [_lost(cell) for cell in cells],
        }
        filled = [(kind, entries) for kind, entries in kinds.items() if any(entries)]
        label = report.labels["row", row]
        rows.append(
            [
                Line("" if i else label, kind, report.second if kind == "second" else kind, entries)
                for i, (kind, entries) in enumerate(filled)
            ]
        )
    agreement = [_agreement(by_place[report.rows[0], column]) for column in columns]
    return [*rows, [Line("Spearman", "rank", "rank", agreement)]] if any(agreement) else rows


def legend(report: Report, second: str, grey: str) -> str:
    """What the marks of numbers mean, in the words of a format."""
    words = f"Bold: best of its column, paper and ours apart; {second}: second."
    if report.better is Better.neither:
        words = "No ranks: the order of these numbers says nothing."
    if (report.cells["mark"] != "").any():
        words += f" {grey.capitalize()}, with a letter: another protocol than the table's."
    return words


def _paper(cell: Cell, report: Report, ranks: Mapping[Any, int]) -> Entry:
    if isnan(cell["paper_mean"]):
        return Entry()
    rank = ranks.get((cell["row"], cell["column"]), 0)
    return Entry(_fixed(cell["paper_mean"], report), _fixed(cell["paper_pm"], report), rank=rank)


def _ours(cell: Cell, report: Report, ranks: Mapping[Any, int]) -> Entry:
    if not cell["seeds"]:
        words = cell["status"] if cell["status"] in UNTRIED else "\N{EN DASH}"
        return Entry(remark=f"{words} {cell['mark']}".rstrip(), grey=bool(cell["mark"]))
    rank = ranks.get((cell["row"], cell["column"]), 0)
    return _summary(cell, "our", cell["seeds"], report, rank)


def _second(cell: Cell, report: Report) -> Entry:
    return (
        _summary(cell, "second", cell["second_seeds"], report) if cell["second_seeds"] else Entry()
    )


def _summary(cell: Cell, kind: str, seeds: int, report: Report, rank: int = 0) -> Entry:
    """Mean, spread and number of seeds; of two seeds, which have no spread, both values."""
    mean, pm, low, high = (
        _fixed(cell[f"{kind}_{key}"], report) for key in ("mean", "pm", "low", "high")
    )
    brackets = f"({low}, {high})" if seeds == 2 else f"({seeds})"
    remark = " ".join(filter(None, [brackets, cell["mark"]]))
    return Entry(mean, pm, remark, rank, grey=bool(cell["mark"]))


def _difference(cell: Cell, report: Report) -> Entry:
    if isnan(cell["difference"]):
        return Entry()
    return Entry(_signed(cell["difference"], report), remark="≈" if cell["within"] else "")


def _rank(cell: Cell) -> Entry:
    if isnan(cell["our_rank"]):
        return Entry()
    return Entry(remark=f"{cell['our_rank']:.0f}, paper {cell['paper_rank']:.0f}")


def _agreement(cell: Cell) -> Entry:
    if isnan(cell["spearman"]):
        return Entry()
    correlation = f"{cell['spearman']:.2f}".replace("-", "\N{MINUS SIGN}")
    return Entry(remark=f"{correlation} ({cell['ranked']})")


def _lost(cell: Cell) -> Entry:
    runs = cell["seeds"] + sum(cell[status] for status in LOST)
    lost = [(cell[status], word) for status, word in LOST.items() if cell[status]]
    words = [f"{count} of {runs} {word}" for count, word in lost]
    return Entry(remark=", ".join(words))


def _fixed(value: float, report: Report) -> str:
    return "" if isnan(value) else f"{value:.{report.decimals}f}"


def _signed(value: float, report: Report) -> str:
    text = f"{value:+.{report.decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}")

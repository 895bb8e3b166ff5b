"""Reports written down: for the terminal, as Markdown, LaTeX or CSV."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from typing import Literal

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from curvlab.errors import UsageError
from curvlab.program import plain_console
from curvlab.tables.latex import latex
from curvlab.tables.layout import Entry, Line, layout, legend
from curvlab.tables.report import Report
from curvlab.tables.spec import Coordinate

Format = Literal["terminal", "markdown", "latex", "csv"]

RANK_STYLES = ("", "bold", "underline")
KIND_STYLES = {
    "paper": "", "ours": "", "second": "", "difference": "dim", "rank": "dim", "lost": "yellow",
}  # fmt: skip


def render(reports: Sequence[Report], form: Format) -> str:
    """A table, or the panels of a figure one below the other; the terminal's without colours."""
    if form == "csv":
        return csv(reports)
    writers: dict[Format, Callable[[Report], str]] = {
        "terminal": terminal,
        "markdown": markdown,
        "latex": latex,
    }
    return "\n".join(map(writers[form], reports))


def csv(reports: Sequence[Report]) -> str:
    """One line a cell, numbers unrounded; `Report.cells` says what the columns are."""
    cells = pd.concat([report.cells for report in reports])
    return cells.to_csv(index=False, lineterminator="\n")


def terminal(report: Report, width: int = 100, styled: bool = False) -> str:
    """The report for a terminal: columns that do not fit beside each other go into blocks below.

    Args:
        report: What to show.
        width: Characters a line.
        styled: Whether to mark the best numbers, with the terminal's own codes.
    """
    out = StringIO()
    console = plain_console(file=out, width=width, force_terminal=styled, no_color=not styled)
    console.print(Text(report.title, style="bold"))
    for columns in _blocks(report, width):
        console.print(_block(report, columns))
        console.print()
    for sentence in report.caption:
        console.print(Text(sentence, style="dim"))
    if styled:
        console.print(Text(legend(report, "underlined", "dim"), style="dim"))
    for i, note in enumerate(report.footnotes, start=1):
        console.print(Text(f"[{i}] {note}", style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def markdown(report: Report) -> str:
    """The report as a GitHub table, padded so that its source can be read as well."""
    header = ["", "", *(report.labels["column", column] for column in report.columns)]
    body = [
        [f"**{line.label}**" if line.label else "", line.name, *map(_markdown_entry, line.entries)]
        for row in layout(report, report.columns)
        for line in row
    ]
    cells = [[_markdown_escape(cell) for cell in line] for line in [header, *body]]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    rule = "| " + " | ".join("-" * w for w in widths) + " |"
    words = [" ".join([*report.caption, legend(report, "italic", "small")])]
    words += [f"{i}. {note}" for i, note in enumerate(report.footnotes, start=1)]
    text = "\n".join([words[0], "", *words[1:]]).rstrip()
    return "\n".join([f"### {report.title}", "", lines[0], rule, *lines[1:], "", text]) + "\n"


def sentence(report: Report, row: str, column: str) -> str:
    """One cell for a text: ours, its second number if there is one, and the paper's.

    Args:
        report: The table.
        row: Its coordinate, for instance `fpst`.
        column: Its coordinate, for instance `web_edu`.

    Raises:
        UsageError: There is no such cell.
    """
    lines = _lines(report, row, column)
    numbers = [
        f"{line.name} {_markdown_entry(replace(line.entries[0], rank=0))}"
        for kind in ("ours", "second", "paper")
        for line in lines
        if line.kind == kind
    ]
    row_value, column_value = _coordinates(report, row, column)
    labels = report.labels["row", row_value], report.labels["column", column_value]
    return f"{', '.join(labels)}: {', '.join(numbers)}.\n"


def number(report: Report, row: str, column: str, whose: str = "ours") -> str:
    """The mean of one cell, without its interval: ours, or `paper` for the printed one.

    Raises:
        UsageError: There is no such cell, or no number in it.
    """
    for line in _lines(report, row, column):
        if line.kind == whose and line.entries[0].mean:
            return line.entries[0].mean
    raise UsageError(f"{report.title} has no number of '{whose}' for {row}, {column}")


def _coordinates(report: Report, row: str, column: str) -> tuple[Coordinate, Coordinate]:
    rows, columns = (
        {str(value): value for value in values} for values in (report.rows, report.columns)
    )
    for name, known in ((row, rows), (column, columns)):
        if name not in known:
            raise UsageError(f"'{name}' is none of {', '.join(known)}: say a row and a column")
    return rows[row], columns[column]


def _lines(report: Report, row: str, column: str) -> Sequence[Line]:
    """The lines of one cell."""
    row_value, column_value = _coordinates(report, row, column)
    return layout(report, [column_value])[report.rows.index(row_value)]


def _markdown_entry(entry: Entry) -> str:
    mark = ("", "**", "*")[entry.rank]
    number = " ± ".join(filter(None, [entry.mean, entry.pm]))
    text = " ".join(filter(None, [f"{mark}{number}{mark}", entry.remark]))
    return f"<sub>{text}</sub>" if entry.grey else text  # Markdown has no grey


def _markdown_escape(text: str) -> str:
    return text.replace("|", "\\|")


def _blocks(report: Report, width: int) -> list[list[Coordinate]]:
    """The columns, as many a block as fit beside the labels."""
    margin = 2  # between two columns
    lines = [line for row in layout(report, report.columns) for line in row]
    left = 1 + sum(max(map(len, names)) + margin for names in _sides(lines))
    widths = [_column_width(report, column) + margin for column in report.columns]
    blocks: list[list[Coordinate]] = [[]]
    used = left
    for column, needed in zip(report.columns, widths, strict=True):
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = left
        blocks[-1].append(column)
        used += needed
    return blocks


def _sides(lines: Sequence[Line]) -> list[list[str]]:
    """What stands left of the numbers: labels, and what each line is."""
    return [[line.label for line in lines], ["difference", *(line.name for line in lines)]]


def _column_width(report: Report, column: Coordinate) -> int:
    entries = [line.entries[0] for row in layout(report, [column]) for line in row]
    widest = max(_aligned(entry, *_widths(entries)).cell_len for entry in entries)
    return max(widest, len(report.labels["column", column]))


def _block(report: Report, columns: list[Coordinate]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for name in ["", "", *(report.labels["column", column] for column in columns)]:
        table.add_column(name, no_wrap=True)
    rows = layout(report, columns)
    lines: list[Line] = [line for row in rows for line in row]
    widths = [_widths([line.entries[i] for line in lines]) for i in range(len(columns))]
    for row in rows:
        for line in row:
            style = KIND_STYLES[line.kind]
            entries = [_aligned(e, *w) for e, w in zip(line.entries, widths, strict=True)]
            table.add_row(Text(line.label, style="bold"), line.name, *entries, style=style)
        table.add_section()
    return table


def _widths(entries: list[Entry]) -> tuple[int, int]:
    """Widths of the numbers and of the spreads of one column."""
    return max(len(entry.mean) for entry in entries), max(len(entry.pm) for entry in entries)


def _aligned(entry: Entry, mean: int, pm: int) -> Text:
    """The entry with its decimal point and its plus-minus sign below those of its column."""
    if not entry.mean:
        return Text(entry.remark, style="dim")
    number = Text(" " * (mean - len(entry.mean)), style="dim" if entry.grey else "")
    number.append(entry.mean, style=RANK_STYLES[entry.rank])
    if entry.pm:
        number.append(f" ± {entry.pm.rjust(pm)}")
    if entry.remark == "≈" or entry.pm:
        number.append(f" {entry.remark}".rstrip())
    elif entry.remark:
        number.append(" " * (3 + pm if pm else 0) + f" {entry.remark}")
    return number

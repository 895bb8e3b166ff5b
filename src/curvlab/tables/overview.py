"""All tables at a glance: what is finished, how it compares, what it took, what is missing."""

from collections.abc import Iterable
from io import StringIO
from math import isnan
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from rich import box
from rich.table import Table

from curvlab.program import command, plain_console
from curvlab.tables.collect import collect
from curvlab.tables.departures import departures, with_departures
from curvlab.tables.document import markdown_table
from curvlab.tables.figures import PaperFigure, load_figures
from curvlab.tables.report import Report, report_of
from curvlab.tables.spec import TableSpec

FIGURES_HEADER = ("paper", "item", "shows", "state", "command")
HEADER = ("table", "cells", "runs", "within", "below", "above", "hours", "title")


class ReadTable(NamedTuple):
    """A table with its runs."""

    spec: TableSpec
    runs: pd.DataFrame
    report: Report


def read_tables(specs: list[TableSpec], results: Path) -> list[ReadTable]:
    """Read the runs of tables; panels of the same runs count once, by the first one's metric.

    Args:
        specs: The tables.
        results: The folder of all tables' results.
    """
    found = []
    for spec in _by_runs(specs):
        runs = collect(results / spec.name, spec.report)
        found.append(ReadTable(spec, runs, report_of(spec, runs, results)))
    return found


def totals(tables: list[ReadTable]) -> str:
    """One line a paper and one for all, in Markdown: `status` added up."""
    papers: dict[str, list[tuple[str, ...]]] = {}
    for spec, runs, report in tables:
        line = _line(spec, report, runs)
        papers.setdefault(spec.name.partition("/")[0], []).append(line)
    lines = [(f"[{paper}]({paper}.md)", *_sums(found)) for paper, found in papers.items()]
    lines.append(("all", *_sums([line for found in papers.values() for line in found])))
    return markdown_table(("paper", *HEADER[1:-1]), lines)


def _sums(lines: list[tuple[str, ...]]) -> list[str]:
    """Columns of `status` added up, `a of b` by its parts."""
    of_planned = [[line[i].split(" of ") for line in lines] for i in (1, 2)]
    counts = [
        " of ".join(f"{sum(map(int, p)):,}" for p in zip(*c, strict=True)) for c in of_planned
    ]
    judged = [str(sum(int(line[i]) for line in lines)) for i in (3, 4, 5)]
    return [*counts, *judged, f"{sum(float(line[6] or 0) for line in lines):,.1f}"]


def _by_runs(specs: list[TableSpec]) -> Iterable[TableSpec]:
    """The first panel of each set of runs."""
    panels: dict[tuple[object, ...], TableSpec] = {}
    for spec in specs:
        of_runs = (spec.name, spec.report.rows, spec.report.columns, *spec.report.where.items())
        panels.setdefault(of_runs, spec)
    return panels.values()


def status(read: list[ReadTable], results: Path, form: str) -> str:
    """One line a table, below them which runs are short and which models are not there; figures.

    Columns: finished cells and finished runs of those planned; cells within the intervals, below
    and above the printed number; hours that the runs took. Then what no sweep fills: whether its
    pictures are there, what else is to be said, and the command.

    Args:
        read: The tables.
        results: The folder of all tables' results; the pictures are in the folder above it.
        form: `terminal` or `markdown`.
    """
    lines, remarks = [], []
    for spec, runs, report in read:
        lines.append(_line(spec, report, runs))
        others = departures(with_departures(spec, runs, results)).values()
        remarks += [f"{spec.name}: {s[0].lower()}{s[1:]}" for s in others]
        if cited := _rows_of("cited", report):
            remarks.append(f"{spec.name}: the paper cites {', '.join(cited)}, which are not run.")
        if absent := _rows_of("missing", report):
            remarks.append(f"{spec.name} has no {', '.join(absent)}.")
    remarks = list(dict.fromkeys(remarks))
    figures = [_figure_line(figure, results.resolve().parent, form) for figure in load_figures()]
    if form == "markdown":
        listed = "".join(f"- {sentence}\n" for sentence in remarks)
        tables = markdown_table(HEADER, lines)
        return f"{tables}\n{LEGEND}\n\n{listed}\n{markdown_table(FIGURES_HEADER, figures)}"
    tables, pictures = _terminal(HEADER, lines), _terminal(FIGURES_HEADER[:-1], figures)
    commands = f"The commands of these: {command('tables')} status --format markdown\n"
    return "\n".join([tables, _printed(LEGEND.replace("*", ""), *remarks), pictures, commands])


def _line(spec: TableSpec, report: Report, runs: pd.DataFrame) -> tuple[str, ...]:
    cells = report.cells  # of them only those of the sweep
    cells = cells[cells["row"].isin(spec.planned_rows)]
    cells = cells[cells["column"].isin(spec.planned_columns)]
    planned = len(spec.planned_rows) * len(spec.planned_columns)
    finished = int((cells["status"] == "finished").sum())
    judged = cells[cells["within"].notna()]
    outside = judged[judged["within"] == False]  # noqa: E712  (the column holds None too)
    hours = runs["seconds"].sum() / 3600
    return (
        spec.name,
        f"{finished} of {planned}",
        f"{cells['planned_seeds'].sum()} of {planned * len(spec.planned_seeds)}",
        str((judged["within"] == True).sum()),  # noqa: E712
        str((outside["difference"] < 0).sum()),
        str((outside["difference"] > 0).sum()),
        "" if isnan(hours) or not hours else f"{hours:.1f}",
        spec.report.title,
    )


def _rows_of(status: str, report: Report) -> list[str]:
    """Rows all of whose cells have this status."""
    others = set(report.cells.loc[report.cells["status"] != status, "row"])
    return [report.labels["row", row] for row in report.rows if row not in others]


def _figure_line(figure: PaperFigure, folder: Path, form: str) -> tuple[str, ...]:
    drawn = figure.drawn(folder)
    words = "drawn" if drawn else "not drawn" if figure.pictures else ""
    command = figure.command
    if form == "markdown":
        if drawn:
            words = ", ".join(f"[drawn]({name})" for name in figure.pictures)
        command = f"`{command}`" if command else ""
    state = "; ".join(filter(None, [words, figure.state]))
    return figure.paper, figure.item, figure.shows, state, command


def _terminal(header: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in header:
        numbers = name in HEADER[1:-1]
        table.add_column(
            name,
            justify="right" if numbers else "left",
            no_wrap=numbers or name == header[0],
            overflow="fold",
        )
    for line in lines:
        table.add_row(*line[: len(header)])
    return _printed(table)


def _printed(*parts: Table | str) -> str:
    out = StringIO()
    console = plain_console(file=out, width=120, no_color=True)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


LEGEND = (
    "Cells and runs: finished, of those planned. *Within*: 0 lies in the difference's 95% interval "
    "(Welch's t). *Below* / *above*: our mean is lower / higher. Not judged: cells of another "
    "protocol than the table's, of one draw of a split that is not known to be the paper's, of "
    "fewer than three runs, and where the paper's standard deviation or number of runs is unknown. "
    "Hours: what the runs took."
)

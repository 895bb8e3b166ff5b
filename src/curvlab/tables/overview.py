"""All tables at a glance: how many of their cells are finished."""

from io import StringIO
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from curvlab.tables.report import build_report
from curvlab.tables.spec import TableSpec


def overview(specs: list[TableSpec], results: Path) -> str:
    """One line a table: its name, finished cells and runs of those planned, and its title.

    Args:
        specs: The tables.
        results: The folder of all tables' results.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("table", no_wrap=True)
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("title", overflow="fold")
    for spec in specs:
        cells = build_report(spec, results).cells
        planned = len(spec.planned_rows) * len(spec.planned_columns)
        finished = int((cells["status"] == "finished").sum())
        table.add_row(
            spec.name,
            f"{finished} of {planned}",
            f"{cells['seeds'].sum()} of {planned * len(spec.planned_seeds)}",
            spec.report.title,
        )
    out = StringIO()
    console = Console(file=out, width=100, no_color=True, highlight=False)
    console.print(table)
    console.print("\nCells and runs: finished, of those planned.")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

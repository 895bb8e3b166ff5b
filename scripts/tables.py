#!/usr/bin/env python
"""Print a paper's table with the reproduced numbers beside the printed ones.

scripts/tables.py list
scripts/tables.py fpst/fig3
scripts/tables.py fpst/fig3 --format latex --output fig3.tex
"""

import argparse
import logging
import sys
from pathlib import Path

from rich.console import Console

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.overview import overview
from curvlab.tables.render import render, terminal

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "outputs" / "tables"


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", help="a table such as fpst/fig3, or `list` to see them all")
    formats = ["terminal", "markdown", "latex", "csv"]
    parser.add_argument("--format", choices=formats, default="terminal")
    parser.add_argument("--output", type=Path, help="write to this file instead of the screen")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of all tables' runs")
    return parser.parse_args()


def make_text(arguments: argparse.Namespace) -> str:
    """What is to be printed or written."""
    configs = ROOT / "configs"
    if arguments.results != RESULTS and not arguments.results.is_dir():
        raise UsageError(f"no folder {arguments.results}: --results names where tables' runs are")
    if arguments.table == "list":
        specs = [spec for name in table_names(configs) for spec in load_table(configs, name)]
        return overview(specs, arguments.results)
    specs = load_table(configs, arguments.table)
    reports = [build_report(spec, arguments.results) for spec in specs]
    if arguments.format == "terminal" and arguments.output is None and sys.stdout.isatty():
        width = Console().width
        return "\n".join(terminal(report, width, styled=True) for report in reports)
    return render(reports, arguments.format)


def main() -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    arguments = parse_arguments()
    try:
        text = make_text(arguments)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.output is None:
        print(text, end="")
    else:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="utf-8")
        print(f"wrote {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

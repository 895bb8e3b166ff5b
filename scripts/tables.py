#!/usr/bin/env python
"""The papers' tables: ours beside the printed numbers, what is finished, what the rest costs.

scripts/tables.py fpst/fig3                               a table
scripts/tables.py fpst/fig3 --format latex --output fig3.tex
scripts/tables.py status                                  all of them, a line each
scripts/tables.py page fpst --output fpst.html            all of a paper, one page for a browser
scripts/tables.py estimate fpst/table1 model=gcn,fpst     what its unfinished cells cost here
scripts/tables.py estimate fpst/table1 --budget 2h        the commands that fill it evenly in 2 h
scripts/tables.py refresh docs/results/README.md          the tables inside a text, anew
"""

import argparse
import logging
import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.document import refresh
from curvlab.tables.overview import status
from curvlab.tables.page import page
from curvlab.tables.render import markdown, render, terminal
from curvlab.tables.report import Report

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
RESULTS = ROOT / "outputs" / "tables"
COMMITTED = ROOT / "docs" / "results" / "tables"


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="a table, or status, page PAPER, estimate TABLE, refresh TEXT",
    )
    formats = ["terminal", "markdown", "latex", "csv"]
    parser.add_argument("--format", choices=formats, default="terminal")
    parser.add_argument("--output", type=Path, help="write to this file instead of the screen")
    parser.add_argument(
        "--results",
        type=Path,
        help="folder of all tables' runs (default: outputs/tables; before the first run, for all "
        "but estimate, docs/results/tables)",
    )
    parser.add_argument("--budget", help="with estimate: a time such as 90s, 30m, 2h, 1.5d")
    devices = ["auto", "cpu", "cuda", "mps"]
    parser.add_argument("--device", choices=devices, default="auto", help="with estimate")
    return parser.parse_args()


def make_text(arguments: argparse.Namespace) -> str:
    """What is to be printed or written.

    Raises:
        UsageError: The words are wrong.
    """
    arguments.results = results_folder(arguments)
    match arguments.words:
        case ["status"]:
            _check_format(arguments, "terminal", "markdown")
            return make_status(arguments.results, arguments.format)
        case ["page", paper]:
            _check_format(arguments, "terminal")  # which is none: a page is HTML
            return page(CONFIGS, paper, arguments.results)
        case ["estimate", table, *words]:
            return make_estimate(table, words, arguments)
        case ["refresh", document]:
            _check_format(arguments, "terminal")  # which is none: the text is Markdown
            arguments.output = arguments.output or Path(document)
            return refresh(_text(Path(document)), partial(block, arguments.results))
        case [table]:
            return make_table(table, arguments)
    raise UsageError(
        f"{' '.join(arguments.words)}: say one table, status, page PAPER, estimate TABLE, or "
        "refresh TEXT"
    )


def _check_format(arguments: argparse.Namespace, *known: str) -> None:
    if arguments.format not in known:
        what = " ".join(arguments.words)
        possible = " or ".join(known[1:])
        instead = f"use --format {possible}" if possible else "drop --format"
        raise UsageError(f"{what} is not written as {arguments.format}: {instead}")


def results_folder(arguments: argparse.Namespace) -> Path:
    """Where to read results: those of this repository's tables until there are own ones.

    Raises:
        UsageError: There is no such folder.
    """
    folder: Path | None = arguments.results
    if folder is None:
        if RESULTS.is_dir() or arguments.words[0] == "estimate":
            return RESULTS
        log.warning("no runs in outputs/tables yet: these are the results in docs/results/tables")
        return COMMITTED
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: --results names where tables' runs are")
    return folder


def make_status(results: Path, form: str) -> str:
    """All tables and figures, a line each."""
    specs = [spec for name in table_names(CONFIGS) for spec in load_table(CONFIGS, name)]
    return status(specs, results, form)


def make_table(table: str, arguments: argparse.Namespace) -> str:
    """One table in the format asked for."""
    reports = _reports(table, arguments.results)
    if arguments.format == "terminal" and arguments.output is None and sys.stdout.isatty():
        width = Console().width
        return "\n".join(terminal(report, width, styled=True) for report in reports)
    return render(reports, arguments.format)


def block(results: Path, words: str) -> str:
    """What stands between two marks of a text: `status`, a table, or `TABLE 2` for its second part.

    Raises:
        UsageError: There is no such table or part.
    """
    match words.split():
        case ["status"]:
            return make_status(results, "markdown")
        case [table]:
            return "\n".join(markdown(report) for report in _reports(table, results))
        case [table, part] if part.isdigit() and 0 < int(part) <= len(load_table(CONFIGS, table)):
            _title, _, body = markdown(_reports(table, results)[int(part) - 1]).partition("\n")
            return body
    raise UsageError(f"<!-- tables.py {words} -->: say status, TABLE or the number of its part")


def _reports(table: str, results: Path) -> list[Report]:
    return [build_report(spec, results) for spec in load_table(CONFIGS, table)]


def _text(path: Path) -> str:
    """The content of a file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def make_estimate(table: str, words: list[str], arguments: argparse.Namespace) -> str:
    """Costs of the unfinished cells, or the commands of those that fit into the budget."""
    from curvlab.bench.estimate import estimate

    load_table(CONFIGS, table)
    budget, device = arguments.budget, arguments.device
    return estimate(CONFIGS, table, arguments.results, words, device, budget)


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

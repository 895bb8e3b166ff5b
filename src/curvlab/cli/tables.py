"""The papers' tables: ours beside the printed numbers, what is finished, what the rest costs.

curvlab tables fpst/fig3                               a table
curvlab tables fpst/fig3 --format latex --output fig3.tex
curvlab tables status                                  all of them, a line each
curvlab tables status fpst/fig3 --watch                one of them: who is at which run
curvlab tables page fpst --output fpst.html            all of a paper, one page for a browser
curvlab tables estimate fpst/table1 model=gcn,fpst     what its unfinished cells cost here
curvlab tables estimate fpst/table1 --budget 2h        the commands that fill it evenly in 2 h
curvlab tables refresh docs/results/*.md               the tables inside a text, anew
curvlab tables leaderboard fpst/table1 fpst:tokengt    its models by mean rank, curved less flat
curvlab tables leaderboard reconstruction              all models of a task on all its datasets
curvlab tables older --output docs/results/older.csv   the cells whose commands have changed
curvlab tables add outputs/tables                      its runs, checked, to docs/results/tables
"""

import argparse
import csv
import io
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from rich.console import Console
from rich.live import Live

from curvlab.cli.overrides import check_overrides
from curvlab.config.folder import CONFIGS, REPOSITORY, choices
from curvlab.errors import UsageError
from curvlab.program import parser as parser_of
from curvlab.statistics import decimals
from curvlab.tables import build_report, load_table, load_tables
from curvlab.tables.add import add_runs
from curvlab.tables.difference import difference
from curvlab.tables.document import refresh
from curvlab.tables.folders import own_results, results_folder, workplace
from curvlab.tables.leaderboard import leaderboard, leaderboard_text
from curvlab.tables.overview import ReadTable, read_tables, status, totals
from curvlab.tables.page import page
from curvlab.tables.planning import planned_runs
from curvlab.tables.progress import progress, watch
from curvlab.tables.render import markdown, number, render, sentence, terminal
from curvlab.tables.report import Report
from curvlab.tables.standing import as_csv, older_cells
from curvlab.tables.task_board import task_board, task_board_text
from curvlab.tables.twins import pairs_of, twins, twins_text


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("tables", __doc__)
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help="a table, or status [TABLE], page PAPER, estimate TABLE, refresh TEXT, "
        "leaderboard TABLE|TASK [CURVED:FLAT], older, add FOLDER",
    )
    formats = ["terminal", "markdown", "latex", "csv"]
    parser.add_argument("--format", choices=formats, default="terminal")
    parser.add_argument("--output", type=Path, help="write to this file instead of the screen")
    parser.add_argument(
        "--results",
        type=Path,
        help="folder of all tables' runs (default: outputs/tables; before the first run, for all "
        "but estimate, and always for add, docs/results/tables)",
    )
    parser.add_argument("--watch", action="store_true", help="with status TABLE: look on")
    parser.add_argument("--budget", help="with estimate: 90s, 30m, 2h, 1.5d")
    devices = ["auto", "cpu", "cuda", "mps"]
    parser.add_argument("--device", choices=devices, default="auto", help="with estimate")
    return parser.parse_intermixed_args(words)  # words of estimate may stand after options


def make_text(arguments: argparse.Namespace) -> str:
    """What is to be printed or written.

    Raises:
        UsageError: The words are wrong.
    """
    match arguments.words:
        case ["status"]:
            _check_format(arguments, "terminal", "markdown")
            return make_status(results_folder(workplace(), arguments.results), arguments.format)
        case ["status", table, *words]:
            _check_format(arguments, "terminal")
            return make_progress(table, words, arguments.results, arguments.watch)
        case ["page"]:
            raise UsageError("page needs a paper, for instance page fpst")
        case ["page", paper]:
            _check_format(arguments, "terminal")  # which is none: a page is HTML
            return page(CONFIGS, paper, results_folder(workplace(), arguments.results))
        case ["estimate"]:
            raise UsageError("estimate needs a table, for instance estimate fpst/fig3")
        case ["estimate", table, *words]:
            return make_estimate(table, words, arguments)
        case ["refresh"]:
            raise UsageError("refresh needs a text, for instance refresh docs/results/*.md")
        case ["refresh", *documents]:
            _check_format(arguments, "terminal")  # which is none: the text is Markdown
            if arguments.output is not None and len(documents) > 1:
                raise UsageError("--output is for one text: drop it to write each in place")
            results = results_folder(workplace(), arguments.results)
            for document in documents[:-1]:
                deliver(refresh(_text(Path(document)), partial(block, results)), Path(document))
            arguments.output = arguments.output or Path(documents[-1])
            return refresh(_text(Path(documents[-1])), partial(block, results))
        case ["older"]:
            _check_format(arguments, "terminal")  # which is none: it is a CSV file
            return as_csv(older_cells(CONFIGS, results_folder(workplace(), arguments.results)))
        case ["leaderboard", table, *pairs]:
            _check_format(arguments, "terminal", "markdown")
            results = results_folder(workplace(), arguments.results)
            return make_leaderboard(table, pairs, results)
        case ["add", *folders]:
            return make_added(folders, arguments.results)
        case [table]:
            return make_table(table, arguments)
    raise UsageError(
        f"{' '.join(arguments.words)}: say one table, status, page PAPER, estimate TABLE, "
        "refresh TEXT, leaderboard TABLE, older or add FOLDER"
    )


def _check_format(arguments: argparse.Namespace, *known: str) -> None:
    if arguments.format not in known:
        what = " ".join(arguments.words)
        possible = " or ".join(known[1:])
        instead = f"use --format {possible}" if possible else "drop --format"
        raise UsageError(f"{what} is not written as {arguments.format}: {instead}")


def make_status(results: Path, form: str) -> str:
    """All tables and figures, a line each."""
    return status(_all(results), results, form)


def columns_of(path: Path, columns: Sequence[str]) -> str:
    """Columns of a CSV file, as a table in Markdown.

    Raises:
        UsageError: the file or a column is not there.
    """
    rows = list(csv.DictReader(io.StringIO(_text(path))))
    missing = [name for name in columns if not rows or name not in rows[0]]
    if missing:
        raise UsageError(f"{path} has no column {missing[0]}")
    lines = [columns, ["---"] * len(columns), *([row[name] for name in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def make_leaderboard(table: str, pairs: Sequence[str], results: Path) -> str:
    """Models of a table, or of a task, by their mean rank, and curved ones less flat twins."""
    if table in choices(CONFIGS, "task"):
        return make_task_board(table, pairs, results)
    spec = load_table(CONFIGS, table)[0]
    found = twins(spec, results, pairs_of(pairs))
    return "\n".join(
        filter(None, [leaderboard_text(leaderboard(spec, results)), twins_text(found)])
    )


def make_task_board(task: str, pairs: Sequence[str], results: Path) -> str:
    """All models of a task on all its datasets; those without gaps ranked; curved less flat."""
    board = task_board(task, load_tables(CONFIGS), results, pairs_of(pairs))
    parts = [
        task_board_text(board),
        "" if board.block is None else leaderboard_text(board.block),
        twins_text(board.twins, decimals(board.scores)),
    ]
    return "\n".join(filter(None, parts))


def make_table(table: str, arguments: argparse.Namespace) -> str:
    """One table in the format asked for."""
    load_table(CONFIGS, table)  # its name is looked at before the results
    reports = _reports(table, results_folder(workplace(), arguments.results))
    if arguments.format == "terminal" and arguments.output is None and sys.stdout.isatty():
        width = Console().width
        return "\n".join(terminal(report, width, styled=True) for report in reports)
    return render(reports, arguments.format)


def block(results: Path, words: str) -> str:
    """What stands between two marks of a text.

    `status`, `totals`, `leaderboard TABLE|TASK [CURVED:FLAT ...]`, a table, `TABLE 2` for its
    second part, or `TABLE ROW COLUMN` for a cell of its first; `file NAME.csv COLUMN ...` for
    columns of a file beside the results; `cell TABLE ROW COLUMN` for a number alone, `TABLE#2` for
    its second part's; `paired TABLE ROW COLUMN ROW COLUMN` for the first cell less the second.

    Raises:
        UsageError: There is no such table, part or cell.
    """
    match words.split():
        case ["status"]:
            return make_status(results, "markdown")
        case ["totals"]:
            return totals(_all(results))
        case [table]:
            return "\n".join(markdown(report) for report in _reports(table, results))
        case [table, part] if part.isdigit() and 0 < int(part) <= len(load_table(CONFIGS, table)):
            _title, _, body = markdown(_reports(table, results)[int(part) - 1]).partition("\n")
            return body
        case ["cell", table, row, column, *whose] if not whose or whose == ["paper"]:
            name, _, panel = table.partition("#")
            reports = _reports(name, results)
            if panel and not (panel.isdigit() and 0 < int(panel) <= len(reports)):
                raise UsageError(f"{name} has {len(reports)} panels, no {panel}")
            return number(reports[int(panel or 1) - 1], row, column, *whose)
        case ["paired", table, row, column, *other] if len(other) == 2:
            name, _, panel = table.partition("#")
            spec = load_table(CONFIGS, name)[int(panel or 1) - 1]
            return difference(spec, results, (row, column), (other[0], other[1]))
        case ["leaderboard", table, *pairs]:
            return make_leaderboard(table, pairs, results)
        case ["file", name, *columns] if columns:
            return columns_of(results.resolve().parent / name, columns)
        case [table, row, column]:
            return sentence(_reports(table, results)[0], row, column)
    raise UsageError(
        f"<!-- tables.py {words} -->: say status, TABLE, the number of its part, or ROW COLUMN"
    )


@cache  # a text has the totals beside each table
def _all(results: Path) -> list[ReadTable]:
    return read_tables(load_tables(CONFIGS), results)


@cache  # a text has a table's parts one by one
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
    """Costs of the unfinished cells, or the commands of the cells that fit into the budget."""
    from curvlab.cli.estimate import estimate

    load_table(CONFIGS, table)
    check_overrides([f"table={table}", *words], CONFIGS, multirun=True)
    given, budget, device = arguments.results, arguments.budget, arguments.device
    results = own_results(workplace()) if given is None else results_folder(workplace(), given)
    return estimate(CONFIGS, table, results, words, device, budget)


def make_progress(table: str, words: list[str], given: Path | None, watching: bool) -> str:
    """How far a table is; `words` are those of the sweep's command."""
    load_table(CONFIGS, table)
    check_overrides([f"table={table}", *words], CONFIGS, multirun=True)
    results = own_results(workplace()) if given is None else given
    runs = planned_runs(CONFIGS, table, words)
    look = partial(progress, table, runs, results)
    if not watching:
        return look().text()
    with Live(auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        watch(look, lambda text: screen.update(text.rstrip(), refresh=True))
    return ""


def make_added(folders: Sequence[str], into: Path | None) -> str:
    """Add the runs of folders to the tables of runs; what was added and what was refused.

    Raises:
        UsageError: There is no folder, or no checkout that has the tables.
    """
    if not folders:
        raise UsageError("add needs a folder of all tables' runs, such as add outputs/tables")
    if into is None:
        if REPOSITORY is None:
            raise UsageError("add needs a clone of the repository, or --results FOLDER to add to")
        into = REPOSITORY / "docs" / "results" / "tables"
    return "".join(add_runs(results_folder(workplace(), Path(f)), into).text() for f in folders)


def deliver(text: str, output: Path | None) -> None:
    """Print the text, or write it to a file.

    Raises:
        UsageError: The file cannot be written.
    """
    if output is None:
        print(text, end="")
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--output {output} must be a file that can be written: {error.strerror}"
        ) from None
    print(f"wrote {output}")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    args = parse_arguments(arguments)
    try:
        deliver(make_text(args), args.output)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0

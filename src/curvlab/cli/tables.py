"""The papers' tables: ours next to the published numbers, what is finished, what the rest costs.

curvlab tables fpst/fig3                               a table
curvlab tables fpst/fig3 --format latex --output fig3.tex
curvlab tables status                                  all of them, a line each
curvlab tables status fpst/fig3 --watch                one of them: who is at which run
curvlab tables page fpst --output fpst.html            all of a paper, one page for a browser
curvlab tables plan fpst/fig3 seed=0,1                 its runs, the finished ones, hours here
curvlab tables estimate fpst/table1 model=gcn,fpst     what its unfinished cells cost here
curvlab tables estimate fpst/table1 --budget 2h        the commands that fill it evenly in 2 h
curvlab tables refresh docs/results/*.md               the tables inside a text, anew
curvlab tables leaderboard reconstruction fpst:tokengt all models of a task, curved less flat
curvlab tables outdated --output docs/results/outdated.csv   the cells whose commands have changed
curvlab tables add outputs/tables                      its runs, checked, to docs/results/tables
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.live import Live

from curvlab.config.folder import CONFIGS, REPOSITORY
from curvlab.errors import UsageError
from curvlab.program import parser as parser_of
from curvlab.tables import build_report, load_table, load_tables
from curvlab.tables.add import add_runs
from curvlab.tables.boards import board, difference
from curvlab.tables.claims import CLAIMS_LEGEND, claims
from curvlab.tables.folders import own_results, results_folder, shipped_results, workplace
from curvlab.tables.overview import overview, status, totals, totals_in_words
from curvlab.tables.page import page
from curvlab.tables.render import (
    markdown,
    markdown_table,
    number,
    refresh,
    render,
    sentence,
    terminal,
)
from curvlab.tables.report import Report

FORMATS = ["terminal", "markdown", "latex", "csv"]
USAGE = {
    "status": "status [TABLE]",
    "page": "page PAPER, as page fpst",
    "plan": "plan TABLE",
    "estimate": "estimate TABLE, as estimate fpst/fig3",
    "refresh": "refresh TEXT, as refresh docs/results/*.md",
    "leaderboard": "leaderboard TASK|TABLE [CURVED:FLAT]",
    "outdated": "outdated",
    "add": "add FOLDER of all tables' runs, as add outputs/tables",
}
"""Forms of the command for its verbs; without one of these the first word is a table."""

OF_SWEEP = ("plan", "estimate", "status")
"""Verbs that take a table and the words of its sweep."""


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("tables", __doc__)
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help=f"a table, or {'; '.join(USAGE.values())}",
    )
    parser.add_argument("--format", choices=FORMATS, default="terminal")
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
    return parser.parse_intermixed_args(words)  # words of estimate may follow options


def make_text(arguments: argparse.Namespace) -> str:
    """Parse the arguments.

    Raises:
        UsageError: The words are wrong.
    """
    verb, *words = arguments.words
    given, form, said = arguments.results, arguments.format, " ".join(arguments.words)
    if verb in USAGE and not words and verb not in ("status", "outdated"):
        raise UsageError(f"{verb} needs more words: {USAGE[verb]}")
    forms = ("terminal", "markdown") if verb in ("status", "leaderboard") else ("terminal",)
    if verb in USAGE and form not in forms:
        raise UsageError(f"{said} is not written as {form}: drop --format")
    if verb in OF_SWEEP and words:
        return of_sweep(verb, words[0], words[1:], arguments)
    if verb not in USAGE:
        if words:
            raise UsageError(f"{said}: say one table, or {'; '.join(USAGE.values())}")
        load_table(CONFIGS, verb)  # an unknown name is refused before results are looked for
    if verb == "add":
        if given is None and REPOSITORY is None:
            raise UsageError("add needs a clone of the repository, or --results FOLDER to add to")
        into = given or Path(str(REPOSITORY), "docs", "results", "tables")
        sources = [results_folder(workplace(), Path(word)) for word in words]
        return "".join(add_runs(source, into).text() for source in sources)
    results = results_folder(workplace(), given)
    match verb, words:
        case "status", []:
            return status(*_overview(results), results, form)
        case "page", [paper]:
            return page(CONFIGS, paper, results)
        case "refresh", documents:
            if arguments.output and len(documents) > 1:
                raise UsageError("--output is for one text: drop it to write each in place")
            for path in map(Path, documents):
                text = refresh(_text(path), partial(block, results))
                deliver(text, arguments.output or path)
            return ""
        case "outdated", []:
            from curvlab.tables.planning import outdated  # Hydra, for which tables do not wait

            columns = ["cell", "runs", "why"]
            cells = pd.DataFrame(outdated(CONFIGS, results), columns=columns)
            return cells.to_csv(index=False, lineterminator="\n")
        case "leaderboard", [name, *pairs]:
            return board(CONFIGS, name, results, pairs).text()
    reports = _reports(verb, results, None if given else shipped_results(results))
    if form == "terminal" and arguments.output is None and sys.stdout.isatty():
        return "\n".join(terminal(report, Console().width, styled=True) for report in reports)
    return render(reports, form)


def block(results: Path, words: str) -> str:
    """Text between two marks.

    `status`, `totals`, `leaderboard TABLE|TASK [CURVED:FLAT ...]`, a table, `TABLE 2` for its
    second part, or `TABLE ROW COLUMN` for a cell of its first; `file NAME.csv COLUMN ...` for
    columns of a file next to the results; `cell TABLE ROW COLUMN` for a number alone, `TABLE#2` for
    its second part's; `paired TABLE ROW COLUMN ROW COLUMN` for the first cell less the second.

    Raises:
        UsageError: There is no such table, part or cell.
    """
    match words.split():
        case ["status"]:
            return status(*_overview(results), results, "markdown")
        case ["totals"]:
            return totals(_overview(results)[0], results.resolve().parent)
        case ["cell", "totals"]:
            return totals_in_words(_overview(results)[0])
        case ["claims"]:
            found = claims(partial(_reports, results=results))
            return f"{markdown_table(found)}\n{CLAIMS_LEGEND}\n"
        case [table]:
            return "\n".join(markdown(report, False) for report in _reports(table, results))
        case ["cell", table, row, column, *whose] if whose in ([], ["paper"]):
            name, _, panel = table.partition("#")
            return number(_panel(_reports(name, results), name, panel), row, column, *whose)
        case ["paired", table, *cells] if len(cells) == 4:
            name, _, panel = table.partition("#")
            spec = _panel(load_table(CONFIGS, name), name, panel)
            return difference(spec, results, (cells[0], cells[1]), (cells[2], cells[3]))
        case ["leaderboard", name, *pairs]:
            return board(CONFIGS, name, results, pairs).text()
        case ["file", name, *columns] if columns:
            return columns_of(results.resolve().parent / name, columns)
        case [table, panel] if panel.isdigit():
            report = _panel(_reports(table, results), table, panel)
            return markdown(report, False).partition("\n")[2]
        case [table, row, column]:
            return sentence(_reports(table, results)[0], row, column)
    raise UsageError(
        f"<!-- tables.py {words} -->: say status, TABLE, the number of its part, or ROW COLUMN"
    )


def _panel(panels: Sequence[Any], table: str, number: str) -> Any:
    """One part of a table, the first where there is no number."""
    if number and not (number.isdigit() and 0 < int(number) <= len(panels)):
        raise UsageError(f"{table} has {len(panels)} panels, no {number}")
    return panels[int(number or 1) - 1]


def columns_of(path: Path, columns: Sequence[str]) -> str:
    """Columns of a CSV file, as a table in Markdown.

    Raises:
        UsageError: the file or a column is not there.
    """
    try:
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    if missing := [name for name in columns if name not in rows]:
        raise UsageError(f"{path} has no column {missing[0]}")
    return markdown_table(rows[list(columns)])


@cache  # a text has the totals next to each table
def _overview(results: Path) -> tuple[pd.DataFrame, list[str]]:
    return overview(load_tables(CONFIGS), results)


@cache  # a text has a table's parts one by one
def _reports(table: str, results: Path, shipped: Path | None = None) -> list[Report]:
    return [build_report(spec, results, shipped) for spec in load_table(CONFIGS, table)]


def _text(path: Path) -> str:
    """The content of a file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def of_sweep(verb: str, table: str, words: list[str], arguments: argparse.Namespace) -> str:
    """Costs of a table's unfinished cells, or its progress; `words` are overrides of its sweep."""
    from curvlab.cli.overrides import check_overrides  # Hydra, for which tables do not wait
    from curvlab.tables.planning import planned_runs, progress, watch

    load_table(CONFIGS, table)
    check_overrides([f"table={table}", *words], CONFIGS, multirun=True)
    given: Path | None = arguments.results
    if verb == "plan":
        from curvlab.cli.forecast import forecast

        return f"{forecast([f'table={table}', *words])}\n"
    if verb == "estimate":
        from curvlab.cli.estimate import estimate

        results = own_results(workplace()) if given is None else results_folder(workplace(), given)
        lines = estimate(CONFIGS, table, results, words, arguments.device, arguments.budget)
        if arguments.output is not None:
            return "".join(f"{line}\n" for line in lines)
        for line in lines:
            print(line, flush=True)
        return ""
    results = given or own_results(workplace())
    look = partial(progress, table, planned_runs(CONFIGS, table, words), results)
    if not arguments.watch:
        return look().text
    with Live(auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        watch(look, lambda text: screen.update(text.rstrip(), refresh=True))
    return ""


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
        text = make_text(args)
        if text:
            deliver(text, args.output)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0

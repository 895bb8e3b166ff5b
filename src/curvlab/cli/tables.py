"""The papers' tables: ours next to the published numbers, what is finished, what the rest costs.

curvlab tables fpst/fig3                               a table
curvlab tables fpst/fig3 --format latex --output fig3.tex
curvlab tables status                                  all of them, a line each
curvlab tables status fpst/fig3                        one of them: who is at which run
curvlab tables page fpst --output fpst.html            all of a paper, one page for a browser
curvlab tables plan fpst/fig3 seed=0,1                 its runs, the finished ones, hours here
curvlab tables estimate fpst/table1 model=gcn,fpst     the same, cell by cell
curvlab tables refresh docs/results/*.md               rewrite the tables inside a text
curvlab tables leaderboard reconstruction fpst:tokengt all models of a task, curved minus flat
curvlab tables decide fpst                             what would decide its claims, per hour
curvlab tables outdated --output docs/results/outdated.csv   the cells whose commands have changed
curvlab tables repeat --minutes 15                     one cheap stored run of each model again
curvlab tables add outputs/tables                      its runs, checked, to docs/results/tables
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from curvlab.cli.verbs import Verb
from curvlab.config.folder import CONFIGS, REPOSITORY
from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, load_tables
from curvlab.tables.add import add_runs
from curvlab.tables.boards import ScoredTable, TaskBoard, board, difference, scored_tables
from curvlab.tables.claims import (
    CLAIMS_LEGEND,
    Claim,
    agenda_in_words,
    claims_table,
    comparison_table,
    load_claims,
    summary_table,
    verdict_in_words,
)
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
    verdict,
)
from curvlab.tables.report import Report
from curvlab.tables.spec import own_results, results_folder, shipped_results, workplace

USAGE = {
    "status": "status [TABLE]",
    "page": "page PAPER, as page fpst",
    "plan": "plan TABLE",
    "estimate": "estimate TABLE",
    "refresh": "refresh TEXT, as refresh docs/results/*.md",
    "leaderboard": "leaderboard TASK [CURVED:FLAT]",
    "decide": "decide [CLAIM], as decide fpst/fig3:fpst:tokengt, or fpst for all of a paper",
    "outdated": "outdated",
    "repeat": "repeat [CELL], as repeat --minutes 15, or repeat fpst/table1/actor/gcn",
    "add": "add FOLDER of all tables' runs, as add outputs/tables",
}
"""Forms of the command for its verbs; without one of these the first word is a table."""


def make_text(arguments: argparse.Namespace) -> str:
    """Make the text that the arguments ask for; empty if there is none."""
    given, form, output = arguments.results, arguments.format, arguments.output
    verb, *further = arguments.words
    command = " ".join(arguments.words)
    usage = USAGE.get(verb) or "; ".join(USAGE.values())
    wrong = UsageError(f"{command}: name one table, or {usage}")
    if (verb in USAGE) != bool(further) and verb not in (
        "status",
        "decide",
        "outdated",
        "repeat",
    ):
        raise wrong
    if verb in USAGE and form not in ("terminal", "markdown" if verb == "status" else ""):
        raise UsageError(f"{command} is not written as {form}: omit --format")
    match arguments.words:
        case ["plan" | "estimate" | "status", table, *overrides]:
            return show_sweep(verb, table, overrides, arguments)
        case ["add", *folders]:
            if given is None and REPOSITORY is None:
                raise UsageError("add needs a clone of the repository, or --results FOLDER")
            into = given or Path(str(REPOSITORY), "docs", "results", "tables")
            sources = [results_folder(workplace(), Path(folder)) for folder in folders]
            return "".join(add_runs(source, into).text() for source in sources)
        case [table] if table not in USAGE:
            load_table(CONFIGS, table)  # an unknown name is refused before results are looked for
    results = results_folder(workplace(), given)
    match arguments.words:
        case ["status"]:
            return status(*_overview(results), results, form)
        case ["page", paper]:
            return page(CONFIGS, paper, results)
        case ["refresh", *documents]:
            if output and len(documents) > 1:
                raise UsageError("--output is for one text: omit it to write each in place")
            for path in map(Path, documents):
                text = path.read_text("utf-8")
                deliver(refresh(text, partial(block, results)), output or path)
                if output is None:
                    draw_claims(text, results)
            return ""
        case ["decide", *claims]:
            return decide(results, claims)
        case ["repeat", *names]:
            return repeat_runs(results, names, arguments.minutes)
        case ["outdated"]:
            # Hydra, for which tables do not wait
            from curvlab.tables.planning import outdated_cells

            cells = pd.DataFrame(outdated_cells(CONFIGS, results), columns=["cell", "runs", "why"])
            return cells.to_csv(index=False, lineterminator="\n")
        case ["leaderboard", name, *pairs]:
            return _board(results, name, pairs).text()
        case [table] if table not in USAGE:
            reports = _reports(table, results, None if given else shipped_results(results))
            if arguments.references and form == "csv":
                raise UsageError("--references adds rows to a text: choose another --format")
            if arguments.references:
                reports = [replace(report, with_references=True) for report in reports]
            if form == "terminal" and output is None and sys.stdout.isatty():
                width = Console().width
                return "\n".join(terminal(report, width, styled=True) for report in reports)
            return render(reports, form)
    raise wrong


def block(results: Path, words: str) -> str:
    """Text between two marks.

    `status`, `totals`, `leaderboard TASK [CURVED:FLAT ...]`, a table, `TABLE 2` for its
    second part, or `TABLE ROW COLUMN` for a cell of its first; `file NAME.csv COLUMN ...` for
    columns of a file next to the results; `claims`; `claim TABLE METHOD OTHER` for its
    verdicts; `cell TABLE ROW COLUMN` for a number alone, `TABLE#2` for
    its second part's; `paired TABLE ROW COLUMN ROW COLUMN` for the first cell less the second.
    """
    match words.split():
        case ["status"]:
            return status(*_overview(results), results, "markdown")
        case ["totals"]:
            return totals(_overview(results)[0], results.resolve().parent)
        case ["cell", "totals"]:
            return totals_in_words(_overview(results)[0])
        case ["claims"]:
            table = claims_table(_main_claims(results))
            return f"{markdown_table(table)}\n{CLAIMS_LEGEND}\n"
        case ["cell", "repeated"]:
            from curvlab.tables.repeat import cheapest_runs, read_repeated, summary

            return summary(read_repeated(results), len(cheapest_runs(results)))
        case ["claims", paper]:
            return paper_claims(results, paper)
        case ["summary"]:
            return markdown_table(summary_table(_main_claims(results)))
        case ["claim", table, method, other, *which] if which in ([], ["others"]):
            return verdict_in_words(_claim(results, table, method, other), counted=not which)
        case ["verdict", table, row, column]:
            return verdict(_reports(table, results)[0], row, column)
        case ["leaders", task]:
            ranked = _board(results, task).block
            return "no models" if ranked is None else ranked.leaders
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
            return _board(results, name, pairs).text()
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
    if number and not (number.isdigit() and 0 < int(number) <= len(panels)):
        raise UsageError(f"{table} has {len(panels)} panels, no {number}")
    return panels[int(number or 1) - 1]


def columns_of(path: Path, columns: Sequence[str]) -> str:
    """Columns of a CSV file, as a table in Markdown."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if missing := [name for name in columns if name not in rows]:
        raise UsageError(f"{path} has no column {missing[0]}")
    return markdown_table(rows[list(columns)])


@cache  # a text has the totals next to each table
def _overview(results: Path) -> tuple[pd.DataFrame, list[str]]:
    specs = load_tables(CONFIGS)
    return overview(specs, lambda spec: _report(spec.name, spec.panel, results))


@cache
def _scored(results: Path) -> list[ScoredTable]:
    return scored_tables(CONFIGS, results)


def _board(results: Path, task: str, pairs: Sequence[str] = ()) -> TaskBoard:
    return board(CONFIGS, task, results, pairs, _scored(results))


@cache
def _claims(results: Path) -> list[Claim]:
    return load_claims(partial(_reports, results=results))


def _main_claims(results: Path) -> list[Claim]:
    return [claim for claim in _claims(results) if not claim.aside]


def _claim(results: Path, *names: str) -> Claim:
    by_name = {claim.name: claim for claim in _claims(results)}
    name = ":".join(names)
    if name not in by_name:
        raise UsageError(f"no claim {' '.join(names)}: there are {', '.join(by_name)}")
    return by_name[name]


def _claims_of(results: Path, paper: str) -> list[Claim]:
    claims = [claim for claim in _claims(results) if claim.folder == paper]
    if not claims:
        raise UsageError(f"no claims of {paper}")
    return claims


def forest_path(results: Path, paper: str) -> Path:
    """The picture of a paper's claims, next to the folder of all tables' results."""
    return results.resolve().parent / f"{paper}_forest.svg"


def paper_claims(results: Path, paper: str) -> str:
    """The picture of a paper's claims and each comparison with its interval and margin."""
    claims = _claims_of(results, paper)
    picture = forest_path(results, paper).name
    parts = [f"![Published and reproduced differences, one line per data set]({picture})\n"]
    for claim in claims:
        parts.append(f"[{claim.claim}](#{claim.link.partition('#')[2]}):\n")
        parts.append(markdown_table(comparison_table(claim)))
    return "\n".join(parts)


def draw_claims(text: str, results: Path) -> None:
    """Draw the pictures of claims that a text has, if they show other numbers."""
    from curvlab.analysis.forest import is_current, save_forest  # matplotlib

    for paper in re.findall(r"(?m)^<!-- tables\.py claims (\w+) -->$", text):
        path, claims = forest_path(results, paper), _claims_of(results, paper)
        if not is_current(path, claims):
            print(f"wrote {save_forest(claims, path)}")


def decide(results: Path, names: Sequence[str]) -> str:
    """What would decide the claims of these names, or all, in order of verdicts per hour."""
    claims = _claims(results) if names else _main_claims(results)
    known = [claim.name for claim in claims]
    chosen = [c for c in claims if not names or any(c.name.startswith(name) for name in names)]
    for name in names:
        if not any(other.startswith(name) for other in known):
            near = get_close_matches(name, known, n=3) or known
            raise UsageError(f"no claim {name}: there is {', '.join(near)}")
    return "".join(f"{line}\n" for line in agenda_in_words(chosen))


_specs = cache(load_table)


@cache  # a text has a table's parts one by one, and counts all tables
def _report(table: str, panel: int, results: Path, shipped: Path | None = None) -> Report:
    return build_report(_specs(CONFIGS, table)[panel], results, shipped)


def _reports(table: str, results: Path, shipped: Path | None = None) -> list[Report]:
    panels = range(len(_specs(CONFIGS, table)))
    return [_report(table, panel, results, shipped) for panel in panels]


def repeat_runs(results: Path, cells: Sequence[str], minutes: float) -> str:
    """Repeat the cheapest runs, of these cells or of all, that fit into some minutes."""
    from curvlab.cli.repeat import repeat  # torch, for which tables do not wait
    from curvlab.tables.repeat import cheapest_runs, read_repeated, summary, write_repeated

    every = cheapest_runs(results)
    left, chosen = 60 * minutes, []
    for run in cheapest_runs(results, cells) if cells else every:
        left -= run.seconds
        if left < 0:
            break
        chosen.append(run)
    for row in repeat(CONFIGS, chosen):
        print(f"{row['table']}/{row['run']}: {row['stored']}, again {row['again']}: {row['word']}")
        write_repeated(results, [row])
    return f"{summary(read_repeated(results), len(every))}\n"


def show_sweep(
    verb: str, table: str, overrides: Sequence[str], arguments: argparse.Namespace
) -> str:
    """Costs of a table's unfinished cells, or its progress, with overrides of the sweep."""
    from curvlab.cli.forecast import Forecast  # Hydra, for which tables do not wait
    from curvlab.cli.overrides import check_overrides, read_overrides

    load_table(CONFIGS, table)
    results = arguments.results or own_results(workplace())
    overrides = [f"table={table}", *read_overrides(overrides)]
    if verb == "status":
        overrides.append(f"paths.output_dir='{results.parent}'")
    check_overrides(overrides, multirun=True)
    forecast = Forecast(overrides)
    for line in forecast.progress(results / table) if verb == "status" else ():
        print(line)
    lines = forecast.lines(each=verb == "estimate")
    if arguments.output is not None:
        return "".join(f"{line}\n" for line in lines)
    for line in lines:
        print(line, flush=True)
    return ""


def deliver(text: str, output: Path | None) -> None:
    """Print the text, or write it to a file."""
    if output is None or not text:
        print(text, end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print(f"wrote {output}")


main = Verb("tables", __doc__, lambda words: deliver(make_text(words), words.output))
main.add_argument(
    "words", nargs="+", metavar="WORD", help=f"a table, or {'; '.join(USAGE.values())}"
)
main.add_argument("--format", choices=("terminal", "markdown", "latex", "csv"), default="terminal")
main.add_argument("--output", type=Path, help="write to this file instead of the screen")
main.add_argument(
    "--references", action="store_true", help="show the reference points of the runs as rows"
)
main.add_argument(
    "--minutes", type=float, default=15.0, help="of repeat: as long as the stored runs took"
)
main.add_argument(
    "--results",
    type=Path,
    help="folder of all tables' runs (default: outputs/tables; without any docs/results/tables)",
)

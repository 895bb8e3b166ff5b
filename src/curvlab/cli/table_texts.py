"""What `curvlab tables` prints and writes of results."""

import argparse
import re
import sys
from collections.abc import Container, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from curvlab.cli.verbs import deliver
from curvlab.config.folder import CONFIGS, REPOSITORY
from curvlab.errors import FAULT, UsageError
from curvlab.tables.add import add_runs
from curvlab.tables.boards import ScoredTable, TaskBoard, board, difference, scored_tables
from curvlab.tables.claim_texts import (
    CLAIMS_LEGEND,
    agenda_in_words,
    claims_table,
    comparison_table,
    summary_table,
    verdict_in_words,
)
from curvlab.tables.claims import Claim, load_claims
from curvlab.tables.nearest_pass import (
    NEAREST_LEGEND,
    RESIDUAL_LEGEND,
    nearest_pass_table,
    panels_of_one_length,
    residual_table,
)
from curvlab.tables.overview import overview, status, totals, totals_in_words
from curvlab.tables.page import page
from curvlab.tables.render import (
    markdown,
    markdown_table,
    number,
    numbers_of_seeds,
    refresh,
    render,
    sentence,
    terminal,
    verdict,
)
from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import (
    load_table,
    load_tables,
    results_folder,
    shipped_results,
    workplace,
)


def make_text(arguments: argparse.Namespace, verbs: Container[str]) -> str | None:
    """Make the text of the arguments: a table, unless the first word is a verb.

    The text is empty if files are written, and None for invalid words.
    """
    results_option = arguments.results
    form = arguments.format
    output = arguments.output
    match arguments.words:
        case ["add", *folders] if folders:
            if results_option is None and REPOSITORY is None:
                raise UsageError("add needs a clone of the repository, or --results FOLDER")
            target = results_option or Path(str(REPOSITORY), "docs", "results", "tables")
            sources = [results_folder(workplace(), Path(folder)) for folder in folders]
            return "".join(add_runs(source, target).text() for source in sources)
        case [table] if table not in verbs:
            load_table(CONFIGS, table)  # an unknown name is refused before results are looked for
    results = results_folder(workplace(), results_option)
    match arguments.words:
        case ["status"]:
            return status(*_overview(results), results, form)
        case ["page", paper]:
            return page(CONFIGS, paper, results)
        case ["refresh", *documents]:
            if output and len(documents) > 1:
                raise UsageError("--output is for one text: omit it to write each in place")
            _refresh_pages([Path(document) for document in documents], results, output)
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
        case [table] if table not in verbs:
            shipped = None if results_option else shipped_results(results)
            reports = _reports(table, results, shipped)
            if arguments.references and form == "csv":
                raise UsageError("--references adds rows to a text: choose another --format")
            if arguments.references:
                reports = [replace(report, with_references=True) for report in reports]
            if form == "terminal" and output is None and sys.stdout.isatty():
                width = Console().width
                return "\n".join(terminal(report, width, styled=True) for report in reports)
            return render(reports, form)
    return None


def _refresh_pages(pages: list[Path], results: Path, output: Path | None) -> None:
    """Rewrite the generated parts of pages and the pictures that belong to them.

    A faulty page stays as it is; all other pages are written before the faults are raised.
    """
    faults = []
    for page_path in pages:
        text = page_path.read_text("utf-8")
        try:
            refreshed = refresh(text, partial(block, results))
        except UsageError as error:
            faults.append(f"{page_path} is left as it is: {error}")
            continue
        deliver(refreshed, output or page_path)
        if output is None:
            draw_pictures(text, results)
    if faults:
        raise UsageError(FAULT.join(faults))


def block(results: Path, words: str) -> str:
    """Text between two marks.

    `status`, `totals`, `leaderboard TASK [CURVED:FLAT ...]` or `leaderboard TABLE`, a table,
    `TABLE 2` for its second part, or `TABLE ROW COLUMN` for a cell of its first; `leaders TASK`
    for the best models; `passes TABLE` for the pass that comes nearest to its published numbers;
    `file NAME.csv COLUMN ...` for columns of a file next to the results; `claims`; `claim TABLE
    METHOD OTHER` for its verdicts; `cell TABLE ROW COLUMN` for a number alone, `TABLE#2` for its
    second part's, with `paper` the published one, with `seeds` that of each seed; `paired TABLE ROW
    COLUMN ROW COLUMN` for the first cell less the second.
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
        case ["passes", name]:
            return nearest_passes(results, name)
        case ["summary"]:
            return markdown_table(summary_table(_main_claims(results)))
        case ["claim", table, method, other, *which] if which in ([], ["others"]):
            return verdict_in_words(_claim(results, table, method, other), counted=not which)
        case ["verdict", table, row, column]:
            return verdict(_reports(table, results)[0], row, column)
        case ["leaders", subject]:
            ranked = _board(results, subject).block
            return "no models" if ranked is None else ranked.leaders
        case [table]:
            return "\n".join(markdown(report, False) for report in _reports(table, results))
        case ["cell", table, row, column, "seeds"]:
            name, _, panel = table.partition("#")
            return numbers_of_seeds(_panel(_reports(name, results), name, panel), row, column)
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


def nearest_passes(results: Path, name: str) -> str:
    """Which ranks and which pass are nearest to a table's published numbers, and what remains."""
    from curvlab.analysis.style import metric_name  # matplotlib

    reports = panels_of_one_length(_reports(name, results))
    nearest = markdown_table(nearest_pass_table(reports, results))
    residuals = markdown_table(residual_table(reports, metric_name))
    return f"{nearest}\n{NEAREST_LEGEND}\n\n{residuals}\n{RESIDUAL_LEGEND}\n"


def _panel(panels: Sequence[Any], table: str, number: str) -> Any:
    if number and not (number.isdigit() and 0 < int(number) <= len(panels)):
        raise UsageError(f"{table} has {len(panels)} panels, no {number}")
    return panels[int(number or 1) - 1]


def columns_of(path: Path, columns: Sequence[str]) -> str:
    """Columns of a CSV file, as a table in Markdown."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    unknown = [name for name in columns if name not in rows]
    if unknown:
        raise UsageError(f"{path} has no column {unknown[0]}")
    return markdown_table(rows[list(columns)])


@cache  # a text has the totals next to each table
def _overview(results: Path) -> tuple[pd.DataFrame, list[str]]:
    specs = load_tables(CONFIGS)
    return overview(specs, lambda spec: _report(spec.name, spec.panel, results))


@cache
def _scored(results: Path) -> list[ScoredTable]:
    return scored_tables(CONFIGS, results)


def _board(results: Path, subject: str, pairs: Sequence[str] = ()) -> TaskBoard:
    return board(CONFIGS, subject, results, pairs, _scored(results))


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


def draw_pictures(text: str, results: Path) -> None:
    """Draw the pictures of claims and commands that a text has, if they show other numbers."""
    from curvlab.analysis.forest import forest_figure  # matplotlib
    from curvlab.cli.pictures import update, update_pictures

    for paper in re.findall(r"(?m)^<!-- tables\.py claims (\w+) -->$", text):
        update(forest_path(results, paper), forest_figure(_claims_of(results, paper)))
    update_pictures(text, results)


def decide(results: Path, names: Sequence[str]) -> str:
    """List the runs that would decide these claims, or all claims, by verdicts per hour."""
    claims = _claims(results) if names else _main_claims(results)
    claim_names = [claim.name for claim in claims]
    selected = claims
    if names:
        selected = [claim for claim in claims if claim.name.startswith(tuple(names))]
    for name in names:
        if not any(claim_name.startswith(name) for claim_name in claim_names):
            near = get_close_matches(name, claim_names, n=3) or claim_names
            raise UsageError(f"no claim {name}: there is {', '.join(near)}")
    return "".join(f"{line}\n" for line in agenda_in_words(selected))


_specs = cache(load_table)


@cache  # a text has a table's parts one by one, and counts all tables
def _report(table: str, panel: int, results: Path, shipped: Path | None = None) -> Report:
    return build_report(_specs(CONFIGS, table)[panel], results, shipped)


def _reports(table: str, results: Path, shipped: Path | None = None) -> list[Report]:
    panels = range(len(_specs(CONFIGS, table)))
    return [_report(table, panel, results, shipped) for panel in panels]


def repeat_runs(results: Path, cells: Sequence[str], minutes: float) -> str:
    """Repeat the cheapest runs of these cells, or of all, that fit into some minutes."""
    from curvlab.cli.repeat import repeat  # torch, for which tables do not wait
    from curvlab.tables.repeat import cheapest_runs, read_repeated, summary, write_repeated

    cheapest = cheapest_runs(results)
    seconds_left = 60 * minutes
    selected = []
    for run in cheapest_runs(results, cells) if cells else cheapest:
        seconds_left -= run.seconds
        if seconds_left < 0:
            break
        selected.append(run)
    for row in repeat(CONFIGS, selected):
        print(f"{row['table']}/{row['run']}: {row['stored']}, again {row['again']}: {row['word']}")
        write_repeated(results, [row])
    return f"{summary(read_repeated(results), len(cheapest))}\n"

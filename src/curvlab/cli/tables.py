"""Show the papers' tables next to the published numbers, their progress and remaining cost.

curvlab tables fpst/fig3                               a table
curvlab tables fpst/fig3 --format latex --output fig3.tex
curvlab tables status                                  all of them, a line each
curvlab tables status fpst/fig3                        one of them: who is at which run
curvlab tables page fpst --output fpst.html            all of a paper, one page for a browser
curvlab tables plan fpst/fig3 seed=0,1                 its runs, the finished ones, hours here
curvlab tables estimate fpst/table1 model=gcn,fpst     the same, cell by cell
curvlab tables refresh docs/results/*.md               rewrite the tables and pictures of a text
curvlab tables leaderboard reconstruction fpst:tokengt all models of a task, curved minus flat
curvlab tables decide fpst                             what would decide its claims, per hour
curvlab tables outdated --output docs/results/outdated.csv   the cells whose commands have changed
curvlab tables repeat --minutes 15                     one cheap stored run of each model again
curvlab tables add outputs/tables                      its runs, checked, to docs/results/tables
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from curvlab.cli.verbs import Verb, deliver
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.tables.spec import load_table, own_results, workplace

USAGE = {
    "status": "status [TABLE]",
    "page": "page PAPER, as page fpst",
    "plan": "plan TABLE",
    "estimate": "estimate TABLE",
    "refresh": "refresh TEXT, as refresh docs/results/*.md",
    "leaderboard": "leaderboard TASK [CURVED:FLAT], or leaderboard TABLE for its runs alone",
    "decide": "decide [CLAIM], as decide fpst/fig3:fpst:tokengt, or fpst for all of a paper",
    "outdated": "outdated",
    "repeat": "repeat [CELL], as repeat --minutes 15, or repeat fpst/table1/actor/gcn",
    "add": "add FOLDER of all tables' runs, as add outputs/tables",
}
"""Forms of the command for its verbs; without one of these the first word is a table."""

WITHOUT_ARGUMENTS = ("status", "decide", "outdated", "repeat")
"""Verbs that need no further word."""


def make_text(arguments: argparse.Namespace) -> str:
    """Make the text of the arguments; empty if the output is printed or written already."""
    verb, *further = arguments.words
    command = " ".join(arguments.words)
    usage = USAGE.get(verb) or "; ".join(USAGE.values())
    wrong = UsageError(f"{command}: name one table, or {usage}")
    if (verb in USAGE) != bool(further) and verb not in WITHOUT_ARGUMENTS:
        raise wrong
    formats = ("terminal", "markdown") if verb == "status" else ("terminal",)
    if verb in USAGE and arguments.format not in formats:
        raise UsageError(f"{command} is not written as {arguments.format}: omit --format")
    match arguments.words:
        case ["plan" | "estimate" | "status", table, *overrides]:
            return show_sweep(verb, table, overrides, arguments)
    from curvlab.cli import table_texts  # pandas, for which no sweep waits

    text = table_texts.make_text(arguments, USAGE)
    if text is None:
        raise wrong
    return text


def show_sweep(
    verb: str, table: str, overrides: Sequence[str], arguments: argparse.Namespace
) -> str:
    """Costs of a table's unfinished cells, or its progress, with overrides of the sweep."""
    # Hydra, for which tables do not wait
    from curvlab.cli.forecast import Forecast
    from curvlab.cli.overrides import check_sweep, read_overrides
    from curvlab.config.cache import user_cache
    from curvlab.config.resolvers import register_resolvers

    register_resolvers()
    load_table(CONFIGS, table)
    results = arguments.results or own_results(workplace())
    overrides = [f"table={table}", *read_overrides(overrides)]
    if verb == "status":
        overrides.append(f"paths.output_dir='{results.parent}'")
    cache = user_cache()
    check_sweep(overrides, cache)
    forecast = Forecast(overrides, cache=cache)
    for line in forecast.progress(results / table) if verb == "status" else ():
        print(line)
    lines = forecast.lines(by_cell=verb == "estimate")
    if arguments.output is not None:
        return "".join(f"{line}\n" for line in lines)
    for line in lines:
        print(line, flush=True)
    return ""


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

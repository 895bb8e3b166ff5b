"""Upload what was logged to W&B without a connection: finished runs, and the tables made of them.

curvlab wandb_sync                        all that are finished below outputs/
curvlab wandb_sync outputs/tables/fpst    those below a folder
curvlab wandb_sync --dry-run              only name them
curvlab wandb_sync --table fpst/fig3      the table itself, into the group of its runs
curvlab wandb_sync --report fpst/fig3     a report with its methods side by side
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.program import command, program
from curvlab.program import parser as parser_of
from curvlab.tables import build_report, load_table
from curvlab.tables.folders import results_folder, workplace
from curvlab.tables.wandb_sync import log_table, offline_runs, require_account, save_report, upload


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("wandb_sync", __doc__)
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        help="where runs are (default: outputs); with --table, of all tables' runs (default: "
        "outputs/tables, before the first run docs/results/tables)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="name what would be uploaded")
    what.add_argument("--table", help="log this table as an artifact instead")
    what.add_argument("--report", metavar="TABLE", help="save the report of this table instead")
    parser.add_argument(
        "--project", default="curvlab", help="of table and report (default: curvlab)"
    )
    parser.add_argument("--entity", help="of the report: user or team (default: the account's)")
    return parser.parse_args(words)


def send_table(table: str, folder: Path | None, project: str) -> None:
    """Log a table as an artifact.

    Raises:
        UsageError: There is no such table, or no result of it.
    """
    specs = load_table(CONFIGS, table)
    results = results_folder(workplace(), folder)
    reports = [build_report(spec, results) for spec in specs]
    if not any(report.cells["seeds"].any() for report in reports):
        raise UsageError(
            f"no finished run of {table} below {results}: run "
            f"{command('train')} -m table={table}, or name the folder of all tables' runs"
        )
    name, online = log_table(reports, table, project, workplace() / "outputs")
    later = "" if online else f" offline: {command('wandb_sync')} uploads it with an account"
    print(f"logged {name}{later}")


def send_report(arguments: argparse.Namespace) -> None:
    """Save the report of a table, which reads what is on the site.

    Raises:
        UsageError: There is no such table, or a folder was named.
    """
    if arguments.folder is not None:
        raise UsageError(f"--report reads the runs on the site: leave out {arguments.folder}")
    specs = load_table(CONFIGS, arguments.report)
    print(f"saved {save_report(specs, arguments.project, arguments.entity)}")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input, 1 for failed uploads."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    args = parse_arguments(arguments)
    folder = args.folder or workplace() / "outputs"
    try:
        if args.table is not None:
            send_table(args.table, args.folder, args.project)
            return 0
        if args.report is not None:
            send_report(args)
            return 0
        runs = offline_runs(folder)
        if not args.dry_run and runs:
            require_account()
        failed = [run for run in runs if not (args.dry_run or upload(run))]
    except UsageError as error:
        print(f"{program('wandb_sync')}: {error}", file=sys.stderr)
        return 2
    for run in runs:
        what = "would upload" if args.dry_run else "failed" if run in failed else "uploaded"
        print(f"{what} {run}")
    print(f"{len(runs)} finished offline runs and tables below {folder}")
    return 1 if failed else 0

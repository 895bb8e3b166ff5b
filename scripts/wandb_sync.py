#!/usr/bin/env python
"""Upload what was logged to W&B without a connection: finished runs, and the tables made of them.

scripts/wandb_sync.py                        all that are finished below outputs/
scripts/wandb_sync.py outputs/tables/fpst    those below a folder
scripts/wandb_sync.py --dry-run              only name them
scripts/wandb_sync.py --table fpst/fig3      the table itself, into the group of its runs
scripts/wandb_sync.py --report fpst/fig3     a report with its methods side by side
"""

import argparse
import sys
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table
from curvlab.wandb_sync import log_table, offline_runs, require_account, save_report, upload

ROOT = Path(__file__).resolve().parents[1]
OUTPUTS = ROOT / "outputs"


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=OUTPUTS, help="where runs are")
    parser.add_argument("--dry-run", action="store_true", help="name what would be uploaded")
    parser.add_argument("--table", help="log this table as an artifact instead")
    parser.add_argument("--report", metavar="TABLE", help="save the report of this table instead")
    parser.add_argument(
        "--project", default="curvlab", help="of table and report (default: curvlab)"
    )
    parser.add_argument("--entity", help="of the report: user or team (default: the account's)")
    return parser.parse_args()


def main() -> int:
    """Run the command line; the exit code is 2 for wrong input, 1 for failed uploads."""
    arguments = parse_arguments()
    try:
        if arguments.table is not None:
            specs = load_table(ROOT / "configs", arguments.table)
            reports = [build_report(spec, OUTPUTS / "tables") for spec in specs]
            name, online = log_table(reports, arguments.table, arguments.project, OUTPUTS)
            later = "" if online else " offline: scripts/wandb_sync.py uploads it with an account"
            print(f"logged {name}{later}")
            return 0
        if arguments.report is not None:
            specs = load_table(ROOT / "configs", arguments.report)
            print(f"saved {save_report(specs, arguments.project, arguments.entity)}")
            return 0
        runs = offline_runs(arguments.folder)
        if not arguments.dry_run and runs:
            require_account()
        failed = [run for run in runs if not (arguments.dry_run or upload(run))]
    except UsageError as error:
        print(f"wandb_sync.py: {error}", file=sys.stderr)
        return 2
    for run in runs:
        what = "would upload" if arguments.dry_run else "failed" if run in failed else "uploaded"
        print(f"{what} {run}")
    print(f"{len(runs)} finished offline runs and tables below {arguments.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

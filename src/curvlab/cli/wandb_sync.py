"""Upload runs that were logged to W&B offline; save the report of a table.

curvlab wandb_sync                        all that are finished below outputs/
curvlab wandb_sync outputs/tables/fpst    those below a folder
curvlab wandb_sync --dry-run              only name them
curvlab wandb_sync --report fpst/fig3     a report on W&B with the methods of a table side by side
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.program import parser as parser_of
from curvlab.results.result import CONCLUSIVE, SET_ASIDE, read_result
from curvlab.tables import load_table
from curvlab.tables.folders import workplace
from curvlab.tables.wandb_report import table_report


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("wandb_sync", __doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where runs are (default: outputs)")
    parser.add_argument("--dry-run", action="store_true", help="name what would be uploaded")
    parser.add_argument("--report", metavar="TABLE", help="save the report of this table instead")
    parser.add_argument("--project", default="curvlab", help="of the report (default: curvlab)")
    parser.add_argument("--entity", help="of the report (default: the account's)")
    return parser.parse_args(words)


def offline_runs(folder: Path) -> list[Path]:
    """Folders `offline-run-*` of runs with a result that were not uploaded yet.

    Not those of runs that were set aside: what ran in their place has the same id.

    Args:
        folder: One that runs were written below.

    Raises:
        UsageError: There is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: name one that runs were written below")
    return [
        path
        for path in sorted(folder.rglob("offline-run-*"))
        if SET_ASIDE not in path.relative_to(folder).parts
        and any(path.glob("*.wandb"))
        and not any(path.glob("*.wandb.synced"))
        and (result := read_result(path.parents[1])) is not None
        and result.status in CONCLUSIVE
    ]


def require_account() -> None:
    """Make sure that uploads have somewhere to go.

    Raises:
        UsageError: wandb is not installed, or knows no account.
    """
    try:
        import wandb
    except ImportError as error:
        raise UsageError("uploads need wandb: pip install 'curvlab[wandb]'") from error
    if not wandb.login(prompt=False, verify=False):
        raise UsageError("wandb knows no account here: call `wandb login`, or set WANDB_API_KEY")


def upload(run: Path) -> bool:
    """Upload one run by wandb's own command; whether that worked."""
    command = [sys.executable, "-m", "wandb", "sync", str(run)]
    return subprocess.run(command, check=False).returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input, 1 for failed uploads."""
    args = parse_arguments(arguments)
    folder = args.folder or workplace() / "outputs"
    try:
        if args.report is not None:
            specs = load_table(CONFIGS, args.report)
            require_account()
            import wandb

            entity = args.entity or str(wandb.Api().default_entity)
            print(f"saved {table_report(specs, args.project, entity).save().url}")
            return 0
        runs = offline_runs(folder)
        if not args.dry_run and runs:
            require_account()
    except UsageError as error:
        print(f"curvlab wandb_sync: {error}", file=sys.stderr)
        return 2
    failed = 0
    for run in runs:
        done = args.dry_run or upload(run)
        failed += not done
        print("would upload" if args.dry_run else "uploaded" if done else "failed", run)
    print(f"{len(runs)} finished offline runs below {folder}")
    return 1 if failed else 0

"""Upload runs that W&B logged offline; compare them by a dashboard or a table's report.

curvlab wandb_sync                        upload all that are finished below outputs/
curvlab wandb_sync outputs/tables/fpst    those below a folder
curvlab wandb_sync --dry-run              only name them
curvlab wandb_sync --dashboard            a workspace on W&B: score by model, curvature, cost
curvlab wandb_sync --report fpst/fig3     a report on W&B with the methods of a table side by side
curvlab wandb_sync --from docs/results/tables/fpst   stored runs as runs of W&B, offline too
curvlab wandb_sync FOLDER --picture dashboard.png    the dashboard's panels, from offline runs
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
from curvlab.tables.wandb_report import dashboard, table_report

REPLAYED = "wandb_replayed"
"""The folder of `outputs` with stored runs as runs of W&B."""


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("wandb_sync", __doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where runs are (default: outputs)")
    parser.add_argument("--dry-run", action="store_true", help="name what would be uploaded")
    parser.add_argument("--dashboard", action="store_true", help="save the dashboard instead")
    parser.add_argument("--report", metavar="TABLE", help="save the report of this table instead")
    parser.add_argument("--picture", type=Path, help="draw the dashboard to this file instead")
    parser.add_argument("--from", type=Path, dest="source", help="replay the runs stored here")
    parser.add_argument("--project", default="curvlab", help="on W&B (default: curvlab)")
    parser.add_argument("--entity", help="on W&B (default: the account's)")
    return parser.parse_args(words)


def offline_runs(folder: Path) -> list[Path]:
    """Folders `offline-run-*` of finished or replayed runs that were not uploaded yet.

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
        and (REPLAYED in path.parts or _has_ended(path.parents[1]))
    ]


def _has_ended(folder: Path) -> bool:
    result = read_result(folder)
    return result is not None and result.status in CONCLUSIVE


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
        if args.source is not None or args.picture is not None:
            from curvlab.cli.wandb_files import draw_dashboard, replay  # which import torch

            if args.source is not None:
                folder = args.folder or folder / REPLAYED / "-".join(args.source.parts[-2:])
                number = replay(args.source, folder, args.project, args.entity)
                print(f"replayed {number} runs in {folder}: upload by curvlab wandb_sync {folder}")
            if args.picture is not None:
                print(f"wrote {draw_dashboard(folder, args.picture)}")
            return 0
        if args.report is not None or args.dashboard:
            specs = load_table(CONFIGS, args.report) if args.report is not None else []
            require_account()
            import wandb

            entity = args.entity or str(wandb.Api().default_entity)
            made = table_report(specs, args.project, entity) if specs else None
            print(f"saved {(made or dashboard(args.project, entity)).save().url}")
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

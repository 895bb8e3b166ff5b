"""Upload runs that W&B has logged offline, and save a dashboard that compares them.

curvlab wandb_sync                        upload all that are finished below outputs/
curvlab wandb_sync outputs/tables/fpst    upload those below a folder
curvlab wandb_sync --dry-run              only list them
curvlab wandb_sync --dashboard            a workspace on W&B: score by model, curvature, cost
curvlab wandb_sync --from docs/results/tables/fpst   stored runs as runs of W&B, offline too
curvlab wandb_sync FOLDER --picture dashboard.png    the dashboard's panels, from offline runs
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.progress import track

from curvlab.cli.verbs import Verb
from curvlab.cli.wandb_keys import COSTS, STEP
from curvlab.errors import UsageError
from curvlab.files import find_below
from curvlab.results.folder import RunDirectory
from curvlab.results.result import SET_ASIDE, read_result, result_files
from curvlab.results.run_tables import text_of
from curvlab.tables.spec import SCORE, workplace

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

LOGGER = "curvlab.callbacks.wandb_logger"
REPLAYED = "wandb_replayed"  # the folder of `outputs` with stored runs as runs of W&B


def offline_runs(folder: Path) -> list[Path]:
    """Offline runs that have ended and are not uploaded, without those that were set aside."""
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}: name one that runs were written below")
    return [
        path
        for path in find_below(folder, "offline-run-*")
        if SET_ASIDE not in path.relative_to(folder).parts
        and any(path.glob("*.wandb"))
        and not any(path.glob("*.wandb.synced"))
        and (REPLAYED in path.parts or RunDirectory(path.parents[1]).conclusion())
    ]


def require_account() -> None:
    """Refuse to upload without an account."""
    import wandb

    if not wandb.login(prompt=False, verify=False):
        raise UsageError("wandb knows no account here: call `wandb login`, or set WANDB_API_KEY")


def upload(runs: Sequence[Path], dry_run: bool) -> None:
    """Upload runs by wandb's command, or only list them."""
    if runs and not dry_run:
        require_account()
    failed = 0
    for run in runs:
        if dry_run:
            print("would upload", run)
            continue
        command = [sys.executable, "-m", "wandb", "sync", str(run)]
        succeeded = subprocess.run(command, check=False).returncode == 0
        failed += not succeeded
        print("uploaded" if succeeded else "failed", run)
    print(f"{len(runs)} finished offline runs")
    if failed:
        sys.exit(1)


def replay(source: Path, target: Path, project: str, entity: str | None) -> int:
    """Log stored runs to W&B as `logger=wandb` does during a run; return their number."""
    results = [(file.parent, read_result(file.parent)) for file in result_files(source)]
    runs = [(folder, result) for folder, result in results if result and result.score is not None]
    if not runs:
        raise UsageError(f"--from {source}: there is no finished run below this folder")
    from curvlab.run.parts import build_logger  # torch, for which --help does not wait
    from curvlab.run.reporting import log_result

    options = {"_target_": LOGGER, "project": project, "entity": entity}
    for folder, result in track(runs, "replaying"):
        place = target / folder.relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        with build_logger(options, result, place, None) as logger:
            assert logger is not None
            curves = text_of(folder / "metrics.csv")
            rows = [] if curves is None else pd.read_csv(StringIO(curves)).to_dict("records")
            for row in rows:
                metrics = {str(name): value for name, value in row.items() if pd.notna(value)}
                logger.log_metrics(metrics, step=int(metrics.pop("step")))
            log_result(result, logger)
    return len(runs)


def dashboard(project: str, entity: str) -> "Workspace":
    """Define the workspace that compares all runs; `save()` uploads it."""
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    kappas: Any = wr.LinePlot(title="curvature", x=STEP, metric_regex="kappa/.*")
    costs = [wr.BarPlot(title=COSTS[name], metrics=[wr.SummaryMetric(name)]) for name in COSTS]
    sections: dict[str, list[Any]] = {
        "Score": [wr.BarPlot(title="score", metrics=[wr.SummaryMetric(SCORE)])],
        "Curves": [wr.LinePlot(title="loss", x=STEP, y=["loss"]), kappas],
        "Cost": costs,
    }
    groups: list[Any] = [ws.Config(name) for name in ("dataset", "model", "manifold")]
    return ws.Workspace(
        entity=entity,
        project=project,
        name="curvlab, models compared",
        sections=[
            ws.Section(name=name, panels=panels, is_open=True) for name, panels in sections.items()
        ],
        runset_settings=ws.RunsetSettings(groupby=groups),
    )


def _wandb_sync(args: argparse.Namespace) -> None:
    folder = args.folder or workplace() / "outputs"
    if args.source is not None:
        folder = args.folder or folder / REPLAYED / "-".join(args.source.parts[-2:])
        number = replay(args.source, folder, args.project, args.entity)
        print(f"replayed {number} runs in {folder}: upload by curvlab wandb_sync {folder}")
    if args.picture is not None:
        from curvlab.cli.wandb_files import draw_dashboard  # matplotlib, likewise

        print(f"wrote {draw_dashboard(folder, args.picture)}")
    elif args.source is not None:
        return
    elif args.dashboard:
        if find_spec("wandb_workspaces") is None:
            raise UsageError(
                "--dashboard needs the package wandb-workspaces: pip install 'curvlab[wandb]'"
            )
        require_account()
        import wandb

        entity = args.entity or str(wandb.Api().default_entity)
        print(f"saved {dashboard(args.project, entity).save().url}")
    else:
        upload(offline_runs(folder), args.dry_run)


main = Verb("wandb_sync", __doc__, _wandb_sync)
main.add_argument("folder", nargs="?", type=Path, help="folder of runs (default: outputs)")
main.add_argument("--dry-run", action="store_true", help="list what would be uploaded")
main.add_argument("--dashboard", action="store_true", help="save the dashboard instead")
main.add_argument("--picture", type=Path, help="draw the dashboard to this file instead")
main.add_argument("--from", type=Path, dest="source", help="folder of stored runs to replay")
main.add_argument("--project", default="curvlab", help="project on W&B (default: curvlab)")
main.add_argument("--entity", help="user or team on W&B (default: the account's)")

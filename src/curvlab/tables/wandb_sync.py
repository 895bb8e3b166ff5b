"""What Weights & Biases gets after the runs: those that were offline, and the tables."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.results.result import CONCLUSIVE, SET_ASIDE, read_result
from curvlab.tables.report import Report
from curvlab.tables.spec import TableSpec
from curvlab.tables.wandb_report import table_report

TABLE_ID = "table"
"""What the ids of tables begin with; those of runs are hexadecimal."""


def offline_runs(folder: Path) -> list[Path]:
    """Folders `offline-run-*` that were not uploaded yet: of runs with a result, and of tables.

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
        and (f"-{TABLE_ID}-" in path.name or _finished(path.parents[1]))
    ]


def _finished(run: Path) -> bool:
    result = read_result(run)
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


def log_table(reports: Sequence[Report], name: str, project: str, folder: Path) -> tuple[str, bool]:
    """Log a table's cells as an artifact, from a run of its own in the group of the table's runs.

    The run's id is the table's name, so that it is replaced, and the artifact gets a new version.
    Without an account the run stays in `folder`, as runs do.

    Args:
        reports: The table, or the panels of a figure.
        name: For instance `fpst/fig3`.
        project: Project on the site.
        folder: Where wandb keeps its files.

    Returns:
        The artifact's name, and whether it is on the site.

    Raises:
        UsageError: wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise UsageError("W&B needs wandb: pip install 'curvlab[wandb]'") from error
    flat = name.replace("/", "-")
    online = wandb.login(prompt=False, verify=False)
    run = wandb.init(
        project=project,
        dir=folder,
        name=name,
        id=f"{TABLE_ID}-{flat}",
        group=name,
        job_type="table",
        mode="online" if online else "offline",
        settings=wandb.Settings(silent=True),
    )
    artifact = wandb.Artifact(f"table-{flat}", type="table", description=reports[0].title)
    for i, report in enumerate(reports):
        cells = report.cells.astype({"row": str, "column": str})
        artifact.add(wandb.Table(dataframe=cells), f"cells{i or ''}")
    run.log_artifact(artifact)
    run.finish()
    return artifact.name, online


def save_report(specs: Sequence[TableSpec], project: str, entity: str | None) -> str:
    """Put a table's report on the site (see `table_report`).

    Args:
        specs: From `load_table`.
        project: Where the runs are.
        entity: User or team; None for the account's default.

    Returns:
        Its address.

    Raises:
        UsageError: wandb is not installed, or knows no account.
    """
    require_account()
    import wandb

    report = table_report(specs, project, entity or str(wandb.Api().default_entity))
    return str(report.save().url)

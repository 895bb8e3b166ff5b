"""Weights & Biases, never required and never asking for a login."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from lightning.pytorch.loggers import Logger

from curvlab.errors import UsageError
from curvlab.options import Incidental


@contextmanager
def wandb_logger(
    folder: str,
    name: str,
    run_id: str,
    resumed: bool,
    group: str | None,
    job_type: str,
    run_config: dict[str, Any],
    project: Incidental[str] = "curvlab",
    entity: Incidental[str | None] = None,
) -> Iterator[Logger]:
    """Log to W&B within the block: online where an account is configured, else offline in `folder`.

    `WANDB_MODE` decides where it is set. The run is finished with the block, so that the next cell
    of a sweep has one of its own, and marked as failed when the block raises.

    Args:
        folder: the run's folder.
        name: name of the run.
        run_id: the same for the same configuration.
        resumed: continue the run of that id, instead of replacing it.
        group: the table the run is a cell of.
        job_type: the cell, which runs of other seeds share.
        run_config: the resolved configuration.
        project: project on the site.
        entity: user or team; null: the account's default.

    Raises:
        UsageError: wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise UsageError("logger=wandb needs wandb: pip install 'curvlab[wandb]'.") from error
    from lightning.pytorch.loggers import WandbLogger

    # Its process may take long to start where a sweep keeps all processors busy.
    silent = wandb.Settings(silent=True, x_service_wait=300)
    wandb.setup(silent)
    mode: Literal["online", "offline"] | None = None
    if not os.environ.get("WANDB_MODE"):
        mode = "online" if wandb.login(prompt=False, verify=False) else "offline"
    run = wandb.init(
        project=project,
        entity=entity,
        dir=folder,
        name=name,
        id=run_id,
        group=group,
        job_type=job_type,
        config=run_config,
        resume="allow" if resumed else None,
        mode=mode,
        settings=silent,
    )
    run.define_metric("*", step_metric="trainer/global_step")
    try:
        yield WandbLogger(experiment=run)
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()

"""Weights & Biases, never required and never asking for a login."""

from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger

from curvlab.errors import UsageError


def wandb_logger(
    project: str,
    entity: str | None,
    folder: str,
    name: str,
    run_id: str,
    group: str | None,
    run_config: dict[str, Any],
) -> Logger:
    """Make the logger: online where an account is configured, else offline in `folder`.

    Args:
        project: project on the site.
        entity: user or team; None for the account's default.
        folder: the run's folder.
        name: name of the run.
        run_id: the same for the same configuration, so that a resumed run continues.
        group: the table the run is a cell of.
        run_config: the resolved configuration.

    Raises:
        UsageError: wandb is not installed.
    """
    try:
        import wandb
    except ImportError as error:
        raise UsageError("logger=wandb needs wandb: pip install 'curvlab[wandb]'.") from error
    from lightning.pytorch.loggers import WandbLogger

    Path(folder).mkdir(parents=True, exist_ok=True)
    return WandbLogger(
        project=project,
        entity=entity,
        save_dir=folder,
        name=name,
        id=run_id,
        group=group,
        config=run_config,
        resume="allow",
        offline=wandb.api.api_key is None,
        settings=wandb.Settings(silent=True),
    )

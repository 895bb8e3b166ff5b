"""Lightning's loggers, in addition to the file of curves. All are optional, and no login is needed.

They are context managers, which close the logger at the end of the block.
"""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

from curvlab.checked import checked
from curvlab.errors import UsageError
from curvlab.files import remove
from curvlab.options import Incidental, Project

EVENTS = "tensorboard"
"""Folder of a run's events."""

RUN_TAG = "curvlab.run"
"""Tag that identifies a run in MLflow, which numbers runs itself."""


@checked
@contextmanager
def wandb_logger(
    project: Incidental[Project] = "curvlab", entity: Incidental[str | None] = None, **run: Any
) -> Iterator[Logger]:
    """Log to W&B within the block: online if an account is configured, else offline in `folder`.

    Args:
        project: project on the site.
        entity: user or team; null: the account's default.
        **run: the run's `folder`, `name`, `run_id`, ..., as `build_logger` passes them.
    """
    import wandb

    # W&B's process starts slowly while a sweep keeps all CPUs busy.
    settings = wandb.Settings(silent=True, x_service_wait=300)
    wandb.setup(settings)
    mode = os.environ.get("WANDB_MODE")
    if not mode:
        has_account = wandb.login(prompt=False, verify=False)
        mode = "online" if has_account else "offline"
    logger = WandbLogger(
        name=run["name"],
        save_dir=run["folder"],
        mode=mode,
        id=run["run_id"],
        project=project,
        entity=entity,
        config=run["run_config"],
        resume=None if run["resumed_at"] is None else "allow",
        settings=settings,
        group=run["group"],
        job_type=run["job_type"],
        tags=run["tags"],
    )
    with _finalize_on_exit(logger):
        yield logger


@contextmanager
def tensorboard_logger(
    folder: str, resumed_at: int | None, run_config: dict[str, Any], **_: Any
) -> Iterator[Logger]:
    """Write events to `FOLDER/tensorboard`. A resumed run drops the events after `resumed_at`."""
    events = Path(folder, EVENTS)
    purge_step = None
    if resumed_at is None:
        remove(events)
    else:
        purge_step = resumed_at + 1
    logger = TensorBoardLogger(
        events,
        name="",
        version="",
        default_hp_metric=False,
        purge_step=purge_step,
    )
    with _finalize_on_exit(logger):
        logger.log_hyperparams(run_config)
        yield logger


@contextmanager
def mlflow_logger(
    experiment: Incidental[str] = "curvlab",
    tracking_uri: Incidental[str] = "sqlite:///outputs/mlflow.db",
    **run: Any,
) -> Iterator[Logger]:
    """Log to MLflow within the block, to a local file or a server.

    Args:
        experiment: experiment that the runs belong to.
        tracking_uri: address of the server, or `sqlite:///FILE`; `MLFLOW_TRACKING_URI` if set.
        **run: see `wandb_logger`.
    """
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    # MLflow uses an option that SQLAlchemy deprecates.
    warnings.filterwarnings("ignore", ".*`noload`.*")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    artifacts = None
    file = tracking_uri.removeprefix("sqlite:///")
    if file != tracking_uri:
        artifacts = Path(file).resolve().with_name("mlartifacts").as_uri()
    mlflow_id = None
    try:
        client = MlflowClient(tracking_uri)
        with suppress(MlflowException):  # it exists, or another worker creates it
            client.create_experiment(experiment, artifact_location=artifacts)
        if run["resumed_at"] is not None:
            experiment_id = client.get_experiment_by_name(experiment).experiment_id
            query = f"tags.`{RUN_TAG}` = '{run['run_id']}'"
            runs = client.search_runs([experiment_id], query)
            if runs:
                mlflow_id = runs[0].info.run_id
        tags = {RUN_TAG: run["run_id"], "group": str(run["group"])}
        logger = MLFlowLogger(experiment, run["name"], tracking_uri, tags, run_id=mlflow_id)
        if mlflow_id is None:
            logger.log_hyperparams(run["run_config"])
    except MlflowException as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"MLflow at logger.tracking_uri={tracking_uri} does not answer: {reason}"
        ) from error
    with _finalize_on_exit(logger):
        yield logger


def log_picture(logger: Logger | None, picture: Path) -> None:
    """Log a picture, if the logger supports pictures."""
    if isinstance(logger, WandbLogger):
        logger.log_image(picture.stem, [str(picture)])
    elif isinstance(logger, TensorBoardLogger):
        from matplotlib.image import imread

        logger.experiment.add_image(picture.stem, imread(picture), dataformats="HWC")
    elif isinstance(logger, MLFlowLogger):
        logger.experiment.log_artifact(logger.run_id, str(picture), "plots")


@contextmanager
def _finalize_on_exit(logger: Logger) -> Iterator[None]:
    """Close a logger at the end of the block, as failed if the block raises."""
    status = "failed"
    try:
        yield
        status = "success"
    finally:
        if isinstance(logger, WandbLogger):
            logger.experiment.finish(exit_code=int(status == "failed"))
        else:
            logger.finalize(status)

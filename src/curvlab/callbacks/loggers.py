"""Lightning's loggers, in addition to the curves' file; none is required or asks for a login."""

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

EVENTS = "tensorboard"  # folder of a run's events
RUN_TAG = "curvlab.run"  # tag that identifies a run in MLflow, which numbers runs itself


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
    silent = wandb.Settings(silent=True, x_service_wait=300)
    wandb.setup(silent)
    mode = os.environ.get("WANDB_MODE")
    if not mode:
        mode = "online" if wandb.login(prompt=False, verify=False) else "offline"
    logger = WandbLogger(
        name=run["name"],
        save_dir=run["folder"],
        mode=mode,
        id=run["run_id"],
        project=project,
        entity=entity,
        config=run["run_config"],
        resume=None if run["resumed_at"] is None else "allow",
        settings=silent,
        **{key: run[key] for key in ("group", "job_type", "tags")},
    )
    with _finalize_on_exit(logger):
        yield logger


@contextmanager
def tensorboard_logger(
    folder: str, resumed_at: int | None, run_config: dict[str, Any], **_: Any
) -> Iterator[Logger]:
    """Write events to `FOLDER/tensorboard`, without those after `resumed_at`."""
    place = Path(folder, EVENTS)
    if resumed_at is None:
        remove(place)
    purge = None if resumed_at is None else resumed_at + 1
    options: dict[str, Any] = {"name": "", "version": "", "default_hp_metric": False}
    with _finalize_on_exit(TensorBoardLogger(place, purge_step=purge, **options)) as logger:
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

    file = tracking_uri.removeprefix("sqlite:///")
    local = file != tracking_uri
    place = Path(file).resolve().with_name("mlartifacts").as_uri() if local else None
    try:
        client = MlflowClient(tracking_uri)
        earlier = None
        with suppress(MlflowException):  # it exists, or another worker creates it
            client.create_experiment(experiment, artifact_location=place)
        if run["resumed_at"] is not None:
            number = client.get_experiment_by_name(experiment).experiment_id
            runs = client.search_runs([number], f"tags.`{RUN_TAG}` = '{run['run_id']}'")
            earlier = runs[0].info.run_id if runs else None
        tags = {RUN_TAG: run["run_id"], "group": str(run["group"])}
        logger = MLFlowLogger(experiment, run["name"], tracking_uri, tags, run_id=earlier)
        if earlier is None:
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
def _finalize_on_exit(logger: Logger) -> Iterator[Logger]:
    """Close a logger at the end of the block, as failed if the block raises."""
    failed = True
    try:
        yield logger
        failed = False
    finally:
        if isinstance(logger, WandbLogger):
            logger.experiment.finish(exit_code=int(failed))
        else:
            logger.finalize("failed" if failed else "success")

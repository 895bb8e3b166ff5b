"""Loggers are asked for only when they are chosen; all are handed the same numbers."""

import pytest

from curvlab.callbacks import mlflow_logger, tensorboard_logger, wandb_logger

LOGGERS = {"wandb": wandb_logger, "tensorboard": tensorboard_logger, "mlflow": mlflow_logger}


def opened(name, folder, resumed_at=None, **others):
    """A logger of a run whose configuration is small."""
    return LOGGERS[name](
        folder=str(folder),
        name="name",
        run_id="id",
        resumed_at=resumed_at,
        group=None,
        job_type="model",
        tags=[],
        run_config={"model": {"dim": 3}},
        **others,
    )


def steps(folder):
    """Steps at which TensorBoard shows a loss."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder / "tensorboard")).Reload()
    return [event.step for event in events.Scalars("loss")]


@pytest.mark.slow
def test_events_go_on_after_an_interruption_and_are_replaced_by_a_fresh_run(tmp_path):
    pytest.importorskip("tensorboard")
    with opened("tensorboard", tmp_path) as logger:
        for step in (1, 2, 3):
            logger.log_metrics({"loss": 1.0}, step=step)
    with opened("tensorboard", tmp_path, resumed_at=2) as logger:
        for step in (3, 4):
            logger.log_metrics({"loss": 0.5}, step=step)
    assert steps(tmp_path) == [1, 2, 3, 4]
    with opened("tensorboard", tmp_path) as logger:
        logger.log_metrics({"loss": 1.0}, step=7)
    assert steps(tmp_path) == [7]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*noload")
def test_mlflow_goes_on_with_the_same_run_and_says_how_it_ended(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    options = {"tracking_uri": store, "experiment": "mine"}

    def interrupted():
        with opened("mlflow", tmp_path, **options) as logger:
            logger.log_metrics({"loss": 1.0}, step=1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    client = mlflow.MlflowClient(store)
    number = client.get_experiment_by_name("mine").experiment_id
    (run,) = client.search_runs([number])
    assert run.info.status == "FAILED"
    with opened("mlflow", tmp_path, resumed_at=1, **options) as logger:
        logger.log_metrics({"loss": 0.5}, step=2)
    (run,) = client.search_runs([number])
    assert run.info.status == "FINISHED"
    assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == [1, 2]
    assert run.data.params == {"model/dim": "3"}

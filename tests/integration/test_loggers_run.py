"""Each logger has the numbers of `metrics.csv`, the score and the pictures."""

import pandas as pd
import pytest
from tiny_runs import TINY

WORDS = (*TINY, "model=kappa_gcn", "trainer.max_steps=10")


def curves(folder):
    """Columns of the curves' file with their values, without gaps."""
    table = pd.read_csv(folder / "metrics.csv").set_index("step")
    return {name: column.dropna() for name, column in table.items()}


def test_the_same_run_is_readable_in_tensorboard(run_here, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = run_here(*WORDS, "logger=tensorboard")
    shown = reader.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    for name, column in curves(tmp_path / "run").items():
        events = {event.step: event.value for event in shown.Scalars(name)}
        assert {step: events[step] for step in column.index} == pytest.approx(column.to_dict())
    assert shown.Scalars("score")[-1].value == pytest.approx(result.score)
    assert "curves" in shown.Tags()["images"]
    assert (tmp_path / "run" / "tensorboard" / "hparams.yaml").exists()


@pytest.mark.filterwarnings("ignore:.*noload")
def test_the_same_run_is_readable_in_mlflow(run_here, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    result = run_here(*WORDS, "logger=mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    number = client.get_experiment_by_name("curvlab").experiment_id
    (run,) = client.search_runs([number])
    for name, column in curves(tmp_path / "run").items():
        history = {m.step: m.value for m in client.get_metric_history(run.info.run_id, name)}
        assert {step: history[step] for step in column.index} == pytest.approx(column.to_dict())
    assert run.data.metrics["score"] == pytest.approx(result.score)
    assert run.data.params["model"] == "kappa_gcn"
    assert "plots/curves.png" in [f.path for f in client.list_artifacts(run.info.run_id, "plots")]
    assert not (tmp_path / "mlruns").exists()

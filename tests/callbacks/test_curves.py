"""The curves of a run, their file and lines of progress; the time of a step."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch import nn

from curvlab.callbacks import Curves, StepTimer, curvatures, curves
from curvlab.callbacks.progress import describe
from curvlab.manifolds import Euclidean, Stereographic


def test_curvatures_are_numbered_and_signed_and_a_shared_one_is_one():
    ball, other = (Stereographic(d, k, learnable=True) for d, k in ((2, -1.5), (3, 0.25)))
    module = nn.ModuleList([ball, Euclidean(2), other, nn.ModuleDict({"space": ball})])
    found = curvatures(module)
    assert {name: kappa.tolist() for name, kappa in found.items()} == {
        "kappa/0": [-1.5, -1.5],
        "kappa/1": [0.25, 0.25, 0.25],
    }
    assert not any(kappa.requires_grad for kappa in found.values())


@pytest.mark.parametrize("batches", [1, 3])
def test_one_row_an_epoch(fit, small, tmp_path, batches):
    path = tmp_path / "metrics.csv"
    curves = Curves(path)
    fit(small(), [curves], steps=12, batches=batches)
    table = pd.read_csv(path)
    assert list(table.columns) == ["step", "loss", "map", "kappa/0/0", "kappa/0/1"]
    assert table["step"].tolist() == [5, 10, 12]
    # The loss of the last step of an epoch, divided by the task's scale; the metric after it.
    assert table["loss"].tolist()[:2] == pytest.approx([-0.4, -0.9])
    assert table["map"].tolist()[:2] == [10.0, 20.0]
    assert (table["kappa/0/0"] == -0.5).all()
    measured = [row.dropna().to_dict() for _, row in table.iterrows()]
    assert curves.rows == measured


def rows_of(steps, evaluated=100):
    """A point every hundred steps, of which the metric is the step."""
    return [
        {"step": step, "loss": 0.0} | ({"map": float(step)} if step % evaluated == 0 else {})
        for step in range(100, steps + 1, 100)
    ]


@pytest.mark.parametrize(
    ("rows", "mean"),
    [
        (rows_of(10_000), (8_100 + 10_000) / 2),  # of 8,100, 8,200, ..., 10,000
        ([], None),
        (rows_of(1_900), None),
        (rows_of(10_000, evaluated=200), None),
    ],
    ids=["enough", "none", "short", "sparse"],
)
def test_the_mean_of_the_last_steps_is_of_twenty_evaluations(tmp_path, rows, mean):
    curves = Curves(tmp_path / "metrics.csv")
    curves.rows = rows
    assert curves.tail_mean("map") == mean
    assert curves.tail_mean("mrr") is None


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(curves, "time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


def run_epoch(timer, clock, seconds, evaluation):
    """One epoch whose steps take the given seconds, then evaluation."""
    trainer = SimpleNamespace(
        is_last_batch=False,
        global_step=0,
        max_steps=1000,
        strategy=SimpleNamespace(root_device=torch.device("cpu")),
    )
    timer.on_train_epoch_start(trainer, None)
    for i, duration in enumerate(seconds):
        trainer.is_last_batch = i == len(seconds) - 1
        trainer.global_step += 1
        clock.now += duration
        timer.on_train_batch_end(trainer, None, None, None, i)
    clock.now += evaluation


def test_times_are_without_the_first_epoch_without_evaluation_and_without_an_interruption(clock):
    timer = StepTimer()
    assert timer.ms_per_step is None
    run_epoch(timer, clock, [5.0, 1.0], evaluation=50.0)
    assert timer.ms_per_step == pytest.approx(3000)
    for mean in (0.1, 0.3, 0.2):
        run_epoch(timer, clock, [mean / 2, mean * 3 / 2], evaluation=50.0)
    assert timer.ms_per_step == pytest.approx(200)  # the median of the epochs' means
    assert timer.wall_seconds == pytest.approx(6 + 1.2 + 4 * 50)
    state = timer.state_dict()
    clock.now += 1000
    resumed = StepTimer()
    resumed.load_state_dict(state)
    clock.now += 4
    assert resumed.wall_seconds == pytest.approx(6 + 1.2 + 4 * 50 + 4)
    assert resumed.ms_per_step == pytest.approx(200)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"map": 93.125, "points/at_rim": 0.25}, "mAP 93.12"),
        ({f"kappa/{i}/0": 0.5 for i in range(6)}, "kappa 0.50 0.50 0.50 0.50 ..."),
        (
            {"val/roc_auc": 81.25, "val/accuracy": 70.0, "kappa/0/0": 1.0},
            "val roc_auc 81.25  kappa 1.00",
        ),
    ],
)
def test_a_row_in_one_line(row, expected):
    assert describe({"step": 5, "loss": 1.2345678, **row}) == f"loss 1.235  {expected}"

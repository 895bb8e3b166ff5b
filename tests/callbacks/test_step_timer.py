"""Time of a step, by a clock that the test turns."""

from types import SimpleNamespace

import pytest
import torch

from curvlab.callbacks import StepTimer, curves


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

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


def run_epoch(timer, clock, seconds, evaluation=0.0, before=0):
    """One epoch whose steps, after those `before`, take the given seconds, then evaluation."""
    trainer = SimpleNamespace(
        is_last_batch=False,
        global_step=before,
        max_steps=1000,
        strategy=SimpleNamespace(root_device=torch.device("cpu")),
    )
    timer.on_train_epoch_start(trainer, None)
    for i, duration in enumerate(seconds):
        trainer.is_last_batch = before == 0 and i == len(seconds) - 1
        trainer.global_step += 1
        clock.now += duration
        timer.on_train_batch_end(trainer, None, None, None, i)
    clock.now += evaluation


def test_median_of_the_epochs_means_without_the_first_and_without_evaluation(clock):
    timer = StepTimer()
    assert timer.ms_per_step is None
    run_epoch(timer, clock, [5.0, 1.0], evaluation=50.0)
    assert timer.ms_per_step == pytest.approx(3000)
    for mean in (0.1, 0.3, 0.2):
        run_epoch(timer, clock, [mean / 2, mean * 3 / 2], evaluation=50.0)
    assert timer.ms_per_step == pytest.approx(200)


def test_wall_time_is_without_the_interruption(clock):
    timer = StepTimer()
    run_epoch(timer, clock, [1.0, 1.0], evaluation=3.0)
    run_epoch(timer, clock, [2.0, 2.0])
    assert timer.wall_seconds == pytest.approx(9.0)
    state = timer.state_dict()
    clock.now += 1000
    resumed = StepTimer()
    resumed.load_state_dict(state)
    clock.now += 4
    assert resumed.wall_seconds == pytest.approx(13.0)
    assert resumed.ms_per_step == pytest.approx(2000)
    run_epoch(resumed, clock, [4.0])
    assert resumed.ms_per_step == pytest.approx(3000)

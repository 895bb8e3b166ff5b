"""Time of a training step and of a run."""

import time
from statistics import median
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer


class StepTimer(Callback):
    """Median over epochs of the mean time of a step in an epoch, without evaluation; wall time.

    The device is waited for at the end of an epoch, never in a step. The first epoch, which warms
    up, is left out if there are others. Both survive an interruption.
    """

    def __init__(self) -> None:
        self._epochs: list[float] = []
        self._first, self._epoch_start = 0, 0.0
        self._earlier, self._start = 0.0, time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        """Times so far."""
        return {"epochs": self._epochs, "wall": self.wall_seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Times of the interrupted run."""
        self._epochs, self._earlier = list(state_dict["epochs"]), state_dict["wall"]

    @property
    def ms_per_step(self) -> float | None:
        """Milliseconds a step; None before the first epoch."""
        epochs = self._epochs[1:] or self._epochs
        return 1000 * median(epochs) if epochs else None

    @property
    def wall_seconds(self) -> float:
        """Seconds since the run began, without the time between interruption and resumption."""
        return self._earlier + time.perf_counter() - self._start

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._first, self._epoch_start = trainer.global_step, time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop the clock at the last step, before evaluation."""
        if trainer.is_last_batch or trainer.global_step == trainer.max_steps:
            if trainer.strategy.root_device.type == "cuda":
                torch.cuda.synchronize()
            steps = trainer.global_step - self._first
            self._epochs.append((time.perf_counter() - self._epoch_start) / steps)

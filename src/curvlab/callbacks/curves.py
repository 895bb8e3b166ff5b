"""Curves of a run: one row per epoch of loss, metrics and curvatures; and its times."""

import math
import time
from collections import deque
from pathlib import Path
from statistics import median
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.callbacks.growing_table import GrowingTable
from curvlab.manifolds import Curvature
from curvlab.tasks.task import TAIL_STEPS, Task

PREFIX = "points/"
"""Prefix of the metrics that `EncoderStatistics` logs."""

NUM_EPOCH_TIMES = 1000
"""Number of last epochs whose times are kept."""

TAIL_POINTS = 20
"""Smallest number of evaluations in the last steps for a mean."""


def curvatures(module: nn.Module) -> dict[str, Tensor]:
    """Curvatures of a model's `Curvature` modules, in order: `kappa/LAYER` to `[components]`."""
    layers = [part for part in module.modules() if isinstance(part, Curvature)]
    return {f"kappa/{i}": layer().detach().reshape(-1) for i, layer in enumerate(layers)}


class Curves(Callback):
    """Appends rows of `step`, `loss`, `map`, ..., `kappa/LAYER/COMPONENT` to `metrics.csv`.

    Attributes:
        rows: Rows of the last `TAIL_STEPS` steps.
    """

    def __init__(self, path: Path) -> None:
        self.rows: list[dict[str, float]] = []
        self._table = GrowingTable(path)
        self._saved_table: dict[str, int] | None = None
        self._loss: Tensor | None = None
        self._partial_loss: Tensor | None = None
        self._steps = 0
        self._evaluation_step = -1

    def state_dict(self) -> dict[str, Any]:
        return self._table.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._saved_table = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restore the rows of the checkpoint. Only the first process writes the file."""
        self._steps = trainer.global_step
        if self._saved_table is not None and trainer.is_global_zero:
            self.rows = self._table.load_state_dict(self._saved_table)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Keep the loss of a step on the device: the mean if the step has several batches."""
        # Lightning has divided the loss of each batch by the number of batches.
        loss = outputs["loss"] / pl_module.loss_scale(batch)
        if self._partial_loss is not None:
            loss = self._partial_loss + loss
        self._partial_loss = loss
        if trainer.global_step > self._steps:
            self._loss = loss
            self._partial_loss = None
            self._steps = trainer.global_step

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Drop the metrics of the last evaluation."""
        trainer.callback_metrics.clear()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the step of the metrics: a last, shorter epoch has no evaluation."""
        self._evaluation_step = trainer.global_step

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add a row, write the file, and pass the row to the loggers."""
        if self._loss is None:
            return
        step = trainer.global_step
        # The mean over the batches of all processes.
        values = {"loss": trainer.strategy.reduce(self._loss, reduce_op="mean")}
        if self._evaluation_step == step:
            values |= trainer.callback_metrics
        for name, kappa in curvatures(pl_module).items():
            values |= {f"{name}/{i}": value for i, value in enumerate(kappa)}
        numbers = [value.detach().double().cpu() for value in values.values()]
        metrics = dict(zip(values, torch.stack(numbers).tolist(), strict=True))
        row = {"step": step, **metrics}
        self.rows.append(row)
        self.rows = [row for row in self.rows if row["step"] > step - TAIL_STEPS]
        if trainer.is_global_zero:
            self._table.append(row)
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=step)

    def tail_mean(self, metric: str) -> float | None:
        """Mean of a metric over the last `TAIL_STEPS` steps.

        None if the run has fewer steps, or these steps fewer than `TAIL_POINTS` values.
        """
        if not self.rows:
            return None
        start = self.rows[-1]["step"] - TAIL_STEPS
        values = [row[metric] for row in self.rows if metric in row and row["step"] > start]
        if start < 0 or len(values) < TAIL_POINTS:
            return None
        return math.fsum(values) / len(values)


class EncoderStatistics(Callback):
    """Logs the encoder's `statistics` of the first forward pass of a validation or test.

    A task of triples averages over many batches of queries, and logs the means itself.
    """

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._statistics: dict[str, Tensor] = {}
        self._hook: Any = None
        if isinstance(pl_module, Task) and pl_module.data_kind == "graph":
            self._hook = pl_module.encoder.register_forward_hook(self._compute)

    @torch.no_grad()
    def _compute(self, encoder: Any, arguments: tuple[Data], points: Tensor) -> None:
        self._hook.remove()
        self._statistics = encoder.statistics(*arguments, points)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the statistics, in a test as part of the result."""
        if self._hook is not None:
            self._hook.remove()
        metrics = {f"{PREFIX}{name}": value for name, value in self._statistics.items()}
        pl_module.log_dict(metrics, batch_size=1, rank_zero_only=True)

    on_test_epoch_start = on_validation_epoch_start
    on_test_epoch_end = on_validation_epoch_end


class StepTimer(Callback):
    """Measures the wall time, and the median time per step over the last epochs.

    The first of `NUM_EPOCH_TIMES` epochs does not count, unless it is the only one.
    """

    def __init__(self) -> None:
        self._epochs: deque[float] = deque(maxlen=NUM_EPOCH_TIMES)
        self._first_step = 0
        self._epoch_start = 0.0
        self._seconds_before = 0.0
        self._start = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": list(self._epochs), "wall": self.wall_seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._epochs.extend(state_dict["epochs"])
        self._seconds_before = state_dict["wall"]

    @property
    def ms_per_step(self) -> float | None:
        """Milliseconds per step; None before the first epoch."""
        if not self._epochs:
            return None
        epochs = list(self._epochs)
        return 1000 * median(epochs[1:] or epochs)

    @property
    def wall_seconds(self) -> float:
        """Seconds of the run so far, without the time between interruption and resumption."""
        return self._seconds_before + time.perf_counter() - self._start

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._first_step = trainer.global_step
        self._epoch_start = time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop the clock at the last step, before evaluation."""
        if trainer.is_last_batch or trainer.global_step == trainer.max_steps:
            if trainer.strategy.root_device.type == "cuda":
                torch.cuda.synchronize()
            seconds = time.perf_counter() - self._epoch_start
            self._epochs.append(seconds / (trainer.global_step - self._first_step))

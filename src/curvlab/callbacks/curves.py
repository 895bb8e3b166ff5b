"""The curves of a run, one row an epoch: loss, metrics, every curvature; and its times."""

import math
import time
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn

from curvlab.files import atomic_write
from curvlab.manifolds import Curvature
from curvlab.models.triple_scorer import TripleScorer
from curvlab.tasks.task import TAIL_STEPS


def curvatures(module: nn.Module) -> dict[str, Tensor]:
    """Curvatures of a model's `Curvature` parts in their order: `kappa/LAYER` to `[components]`."""
    found = [part for part in module.modules() if isinstance(part, Curvature)]
    return {f"kappa/{i}": part().detach().reshape(-1) for i, part in enumerate(found)}


PREFIX = "points/"  # prefix of the metrics that `BoundaryFraction` logs
TAIL_POINTS = 20  # how many evaluations there must be in these steps


class Curves(Callback):
    """Rows of `step`, `loss`, `map` ..., `kappa/LAYER/COMPONENT`; written to `metrics.csv`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, float]] = []
        self._loss: Tensor | None = None
        self._part: Tensor | None = None
        self._steps = 0
        self._evaluated_at = -1

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = list(state_dict["rows"])

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._steps = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Remember the loss, on the device; of a step of several batches, their mean."""
        # Lightning has divided each by their number.
        loss = outputs["loss"] / pl_module.loss_scale(batch)
        self._part = loss if self._part is None else self._part + loss
        if trainer.global_step > self._steps:
            self._loss, self._part, self._steps = self._part, None, trainer.global_step

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the metrics of the last evaluation."""
        trainer.callback_metrics.clear()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Remember which step the metrics are of: a last, shorter epoch has none."""
        self._evaluated_at = trainer.global_step

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add a row, write the file, hand the row to the loggers."""
        if self._loss is None:
            return
        # Of several processes, the mean over their batches.
        values = {"loss": trainer.strategy.reduce(self._loss, reduce_op="mean")}
        if self._evaluated_at == trainer.global_step:
            values |= trainer.callback_metrics
        for name, kappa in curvatures(pl_module).items():
            values |= {f"{name}/{i}": value for i, value in enumerate(kappa)}
        numbers = torch.stack([value.detach().double().cpu() for value in values.values()]).tolist()
        row = {"step": trainer.global_step, **dict(zip(values, numbers, strict=True))}
        self.rows.append(row)
        if trainer.is_global_zero:
            atomic_write(self.path, pd.DataFrame(self.rows).to_csv(index=False))
        for logger in trainer.loggers:
            logged = {name: value for name, value in row.items() if name != "step"}
            logger.log_metrics(logged, step=trainer.global_step)

    def tail_mean(self, metric: str) -> float | None:
        """Mean of a metric over the last 2,000 steps; None where these have under 20 values."""
        start = self.rows[-1]["step"] - TAIL_STEPS if self.rows else -1
        values = [row[metric] for row in self.rows if metric in row and row["step"] > start]
        if start < 0 or len(values) < TAIL_POINTS:
            return None
        return math.fsum(values) / len(values)


class BoundaryFraction(Callback):
    """Logs the `shares` of the embeddings of the first forward pass of a validation or test."""

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._shares: dict[str, Tensor] = {}
        encoder: Any = getattr(pl_module, "encoder", None)
        graphs = encoder is not None and not isinstance(encoder, TripleScorer)
        self._hook: Any = encoder.register_forward_hook(self._take) if graphs else None

    def _take(self, encoder: Any, _batch: Any, points: Tensor) -> None:
        self._hook.remove()
        self._shares = encoder.manifold_out.shares(points.detach())

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log the shares, in a test as part of the result."""
        if self._hook is not None:
            self._hook.remove()
        logged = {f"{PREFIX}{name}": share for name, share in self._shares.items()}
        pl_module.log_dict(logged, batch_size=1, rank_zero_only=True)

    on_test_epoch_start = on_validation_epoch_start
    on_test_epoch_end = on_validation_epoch_end


class StepTimer(Callback):
    """Median over epochs, without the first, of a step's mean time; and wall time."""

    def __init__(self) -> None:
        self._epochs: list[float] = []
        self._first, self._epoch_start = 0, 0.0
        self._earlier, self._start = 0.0, time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self._epochs, "wall": self.wall_seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
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
        self._first, self._epoch_start = trainer.global_step, time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Stop the clock at the last step, before evaluation."""
        if trainer.is_last_batch or trainer.global_step == trainer.max_steps:
            if trainer.strategy.root_device.type == "cuda":
                torch.cuda.synchronize()
            steps = trainer.global_step - self._first
            self._epochs.append((time.perf_counter() - self._epoch_start) / steps)

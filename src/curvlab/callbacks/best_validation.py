"""Selection of the weights with the best validation score, and early stopping."""

from collections.abc import Callable
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from curvlab.callbacks.finite_guard import is_on_accelerator
from curvlab.process import is_distributed


class BestValidation(Callback):
    """Validates every `interval` steps, keeps the best weights, and stops a run without progress.

    Scores and weights stay on the device. The first of equal scores counts. The first process
    validates, or all processes if the module `evaluates_together`.

    Args:
        interval: Steps between two validations.
        patience: Steps without a better score after which training stops; None: never.
        min_steps: Steps before which training does not stop.
        evaluation_batch: Function from a training batch to the batch to validate on; None: the
            training batch itself.
    """

    def __init__(
        self,
        interval: int,
        patience: int | None,
        min_steps: int,
        evaluation_batch: Callable[[Any], Any] | None = None,
    ) -> None:
        self.interval = interval
        self.patience = patience
        self.min_steps = min_steps
        self.evaluation_batch = evaluation_batch
        self.weights: dict[str, Tensor] = {}
        self._score = torch.tensor(-torch.inf)
        self._step = torch.tensor(0)
        self._is_over = torch.tensor(False)
        self._current: dict[str, Tensor] = {}
        self._steps = 0

    @property
    def score(self) -> float:
        """Best score; minus infinity before the first validation."""
        return float(self._score)

    @property
    def step(self) -> int:
        """Step of the best score; 0 before the first validation."""
        return int(self._step)

    def state_dict(self) -> dict[str, Any]:
        return {
            "score": self._score,
            "step": self._step,
            "ended": self._is_over,
            "weights": self.weights,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._score = state_dict["score"]
        self._step = state_dict["step"]
        self._is_over = state_dict["ended"]
        self.weights = state_dict["weights"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move the best weights to the device; stop if the interrupted run was complete."""
        device = pl_module.device
        self._score = self._score.to(device)
        self._step = self._step.to(device)
        self._is_over = self._is_over.to(device)
        # These tensors share the memory of the module's weights during training.
        self._current = pl_module.state_dict()
        if not self.weights:
            self.weights = {name: weight.clone() for name, weight in self._current.items()}
        self.weights = {name: weight.to(device) for name, weight in self.weights.items()}
        trainer.should_stop = bool(self._is_over)
        self._steps = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Validate after every `interval` steps; a step may have several batches."""
        if trainer.global_step == self._steps:
            return
        self._steps = trainer.global_step
        if self._steps % self.interval:
            return
        score = self._score.new_zeros(())
        evaluates_together = getattr(pl_module, "evaluates_together", False)
        if evaluates_together and is_distributed():
            # Running averages, such as those of BatchNorm, differ by process.
            for buffer in pl_module.buffers():
                torch.distributed.broadcast(buffer, src=0)
        if evaluates_together or trainer.is_global_zero:
            if self.evaluation_batch is not None:
                batch = self.evaluation_batch(batch)
            pl_module.eval()
            with torch.no_grad():
                score = pl_module.validation_score(batch)
            pl_module.train()
        if is_distributed():
            if not evaluates_together:
                score = score.to(self._score.dtype)
            torch.distributed.broadcast(score, src=0)
        self._update(score, self._steps)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._is_over:
            trainer.should_stop = True

    def restore(self, pl_module: LightningModule) -> None:
        """Load the best weights into the module, unless every score was NaN."""
        if self._score > -torch.inf:
            pl_module.load_state_dict(self.weights)

    def _update(self, score: Tensor, step: int) -> None:
        """Keep score, step and weights if the score is better, and decide whether to stop."""
        better = (score > self._score) & ~self._is_over
        self._score = torch.where(better, score, self._score)
        self._step = torch.where(better, step, self._step)
        if is_on_accelerator(better):
            for name, weight in self._current.items():
                torch.where(better, weight, self.weights[name], out=self.weights[name])
        elif better:
            for name, weight in self._current.items():
                self.weights[name].copy_(weight)
        if self.patience is not None and step >= self.min_steps:
            steps_without_progress = step - self._step
            self._is_over = self._is_over | (steps_without_progress >= self.patience)

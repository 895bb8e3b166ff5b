"""The end of a run whose values are not finite, with the place of the first such value."""

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from curvlab.callbacks.curves import curvatures
from curvlab.errors import DivergedError
from curvlab.finite import first_non_finite, step_suffix
from curvlab.process import is_distributed


class FiniteGuard(Callback):
    """Ends a run whose loss or gradients are not finite.

    On a CPU it checks every step, on an accelerator every `interval` steps, since a check
    synchronises.
    """

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self._loss: Tensor | None = None
        self._batch: Any = None
        self._is_finite: Tensor | None = None
        self._interval_start = 1

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self._batch = batch

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: Tensor
    ) -> None:
        self._loss = loss.detach()

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer
    ) -> None:
        """Check before the update, which would spoil the weights."""
        assert self._loss is not None
        step = trainer.global_step + 1
        is_finite = _is_finite(pl_module, self._loss)
        if self._is_finite is None:
            self._is_finite = is_finite
        else:
            self._is_finite = self._is_finite & is_finite
        checks_every_step = self.interval == 1 and not is_distributed()
        if checks_every_step or not is_on_accelerator(is_finite):
            if not is_finite:
                self._end(pl_module, step)
        elif step % self.interval == 0:
            self._check_interval(step)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the remaining steps on an accelerator."""
        self._check_interval(trainer.global_step)

    def _check_interval(self, step: int) -> None:
        if self._is_finite is not None and not self._is_finite:
            raise DivergedError(
                f"loss or gradients were not finite between steps {self._interval_start} and "
                f"{step}: repeat the run with debug=nan, on one device, to learn where it began"
            )
        self._interval_start = step + 1

    def _end(self, pl_module: LightningModule, step: int) -> None:
        """Raise an error that names the place of the first value that is not finite."""
        place = first_non_finite(pl_module, lambda: _loss(pl_module, self._batch))
        if not place:
            place = "the loss, or the norm of all gradients"
            # The backward pass runs from the last module to the first.
            for name, gradient in _gradients(pl_module).items():
                if not gradient.isfinite().all():
                    place = f"gradient of {name}"
        kappas = []
        for name, kappa in curvatures(pl_module).items():
            values = ", ".join(f"{value:.4g}" for value in kappa.tolist())
            kappas.append(f"{name} = {values}")
        curvature = "; ".join(kappas) or "no curvature"
        raise DivergedError(f"not finite at step {step}: {place}; {curvature}")


def check_weights(module: nn.Module) -> None:
    """Refuse weights that the last update has made infinite or NaN."""
    place = first_non_finite(module, lambda: None)
    if place:
        raise DivergedError(f"not finite{step_suffix(module)}: {place}")


def is_on_accelerator(tensor: Tensor) -> bool:
    """Whether reading a value synchronises a device."""
    return tensor.device.type != "cpu"


def _is_finite(module: nn.Module, loss: Tensor) -> Tensor:
    """Whether loss and gradients are all finite, as a tensor on their device."""
    norm = get_total_norm(list(_gradients(module).values()))
    return torch.isfinite(loss) & torch.isfinite(norm)


def _gradients(module: nn.Module) -> dict[str, Tensor]:
    """Gradients of a module by parameter. A sparse gradient is represented by its rows."""
    gradients = {}
    for name, parameter in module.named_parameters():
        gradient = parameter.grad
        if gradient is None:
            continue
        gradients[name] = gradient._values() if gradient.is_sparse else gradient
    return gradients


def _loss(module: LightningModule, batch: Any) -> Any:
    """Loss of a training step, not of a replayed CUDA graph, which calls no hooks."""
    return type(module).training_step(module, batch, 0)

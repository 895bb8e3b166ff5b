"""End a run whose values are no longer finite, and say where it began."""

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
    """Ends a run whose loss or gradients are not finite; checks a GPU every `interval` steps."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self._loss: Tensor | None = None
        self._batch: Any = None
        self._finite: Tensor | None = None
        self._first_unchecked = 1

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
        """Check before the update spoils the weights."""
        assert self._loss is not None
        step = trainer.global_step + 1
        finite = _is_finite(pl_module, self._loss)
        self._finite = finite if self._finite is None else self._finite & finite
        if not waits_for_device(finite) or (self.interval == 1 and not is_distributed()):
            if not finite:
                self._end(pl_module, step)
        elif step % self.interval == 0:
            self._check_interval(step)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the remaining steps on an accelerator."""
        self._check_interval(trainer.global_step)

    def _check_interval(self, step: int) -> None:
        if self._finite is not None and not self._finite:
            raise DivergedError(
                f"loss or gradients were not finite between steps {self._first_unchecked} and "
                f"{step}: repeat the run with debug=nan, on one device, to learn where it began"
            )
        self._first_unchecked = step + 1

    def _end(self, pl_module: LightningModule, step: int) -> None:
        kappas = [
            f"{name} = {', '.join(f'{value:.4g}' for value in kappa.tolist())}"
            for name, kappa in curvatures(pl_module).items()
        ]
        where = first_non_finite(pl_module, lambda: _loss(pl_module, self._batch))
        if not where:  # backward runs from the last module to the first
            bad = [n for n, g in _gradients(pl_module).items() if not g.isfinite().all()]
            where = f"gradient of {bad[-1]}" if bad else "the loss, or the norm of all gradients"
        raise DivergedError(
            f"not finite at step {step}: {where}; {'; '.join(kappas) or 'no curvature'}"
        )


def check_weights(module: nn.Module) -> None:
    """Check the weights before an evaluation: the last update may have spoilt them."""
    bad = first_non_finite(module, lambda: None)
    if bad:
        raise DivergedError(f"not finite{step_suffix(module)}: {bad}")


def waits_for_device(tensor: Tensor) -> bool:
    """Whether reading a value synchronises a device."""
    return tensor.device.type != "cpu"


def _is_finite(module: nn.Module, loss: Tensor) -> Tensor:
    """Whether loss and gradients are all finite, as a tensor on their device."""
    norm = get_total_norm(list(_gradients(module).values()))
    return torch.isfinite(loss) & torch.isfinite(norm)


def _gradients(module: nn.Module) -> dict[str, Tensor]:
    """Gradients of a module by parameter; of sparse gradients, their rows."""
    grads = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    return {name: grad._values() if grad.is_sparse else grad for name, grad in grads.items()}


def _loss(module: LightningModule, batch: Any) -> Any:
    return type(module).training_step(module, batch, 0)  # a replayed CUDA graph calls no hooks

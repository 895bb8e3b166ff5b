"""The end of a run whose numbers are no longer finite, with the place where it happened."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, get_total_norm
from torch.optim import Optimizer

from curvlab.callbacks.curves import curvatures
from curvlab.callbacks.reproducibility import random_state, set_random_state
from curvlab.finite import DivergedError, after_step, first_non_finite
from curvlab.process import in_group, own_rank


class _State:
    """A copy of what the next steps depend on."""

    def __init__(self, step: int, module: nn.Module, optimizer: Optimizer) -> None:
        self.step = step
        self._module = deepcopy(module.state_dict())
        self._optimizer = deepcopy(optimizer.state_dict())
        self._random = random_state()

    def restore(self, module: nn.Module, optimizer: Optimizer) -> None:
        """Go back to it."""
        module.load_state_dict(self._module)
        optimizer.load_state_dict(self._optimizer)
        set_random_state(self._random)


class FiniteGuard(Callback):
    """Looks at loss and gradients before each update and ends the run when they are not finite.

    On the processor it looks at every step. On an accelerator, where looking waits for the device,
    the step of the first bad value is kept there and read every `interval` steps; the run then
    goes back to the copy of its state made at the last look and repeats the steps from there, with
    the batches of these steps, which are kept until then. A step may have several batches, whose
    losses are averaged.

    Args:
        folder: where the batch and the weights are saved for later inspection.
        interval: steps between two looks on an accelerator.
    """

    def __init__(self, folder: Path, interval: int) -> None:
        self.folder = folder
        self.interval = interval
        self._loss: Tensor | None = None
        self._batches: list[Any] = []
        self._steps: list[list[Any]] = []
        self._good: Tensor | None = None
        self._state: _State | None = None

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Remember the batches of the step."""
        self._batches.append(batch)

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: Tensor
    ) -> None:
        """Remember the loss."""
        self._loss = loss.detach()

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer
    ) -> None:
        """Look, before the update spoils the weights."""
        assert self._loss is not None
        good = _is_finite(pl_module, self._loss)
        step = trainer.global_step + 1
        batches, self._batches = self._batches, []
        if _is_cheap_to_read(good):
            if not good:
                self._end(pl_module, step, batches)
            return
        self._good = good if self._good is None else self._good & good
        self._steps.append(batches)
        if (step - 1) % self.interval == 0:
            self._look(trainer, pl_module, optimizer, step)
            self._state = _State(step, pl_module, optimizer)
            self._steps = [batches]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at the steps since the last look on an accelerator."""
        if self._state is not None:
            self._look(trainer, pl_module, trainer.optimizers[0], trainer.global_step)

    def _look(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer, step: int
    ) -> None:
        """Wait for the device; if a value was bad, repeat the steps to find where it began."""
        if self._good is None or self._good:
            return
        first = step
        if in_group():
            first = self._state.step if self._state is not None else step
            raise DivergedError(
                f"loss or gradients were not finite between steps {first} and {step}: repeat the "
                "run with trainer.accelerator=cpu, or on one device, to learn where it began"
            )
        if self._state is not None:
            first = self._state.step
            self._state.restore(pl_module, optimizer)
        steps = range(first, step + 1)
        for at, batches in zip(steps, self._steps[-len(steps) :], strict=True):
            optimizer.zero_grad()
            for batch in batches:
                loss = loss_of_step(pl_module, batch) / len(batches)
                loss.backward()
            if not _is_finite(pl_module, loss):
                self._end(pl_module, at, batches)
            if trainer.gradient_clip_val:
                clip_grad_norm_(pl_module.parameters(), trainer.gradient_clip_val)
            optimizer.step()
        raise DivergedError(
            f"loss or gradients were not finite between steps {first} and {step}, but are when "
            "these steps are repeated: look for randomness outside torch's generators"
        )

    def _end(self, pl_module: LightningModule, step: int, batches: list[Any]) -> None:
        """Save what is needed to look into it and raise."""
        # The gradient is that of all; a batch whose loss is bad tells more.
        batch = next(
            (b for b in batches if not torch.isfinite(loss_of_step(pl_module, b))), batches[-1]
        )
        place = first_of_step(pl_module, batch)
        kappas = {name: kappa.tolist() for name, kappa in curvatures(pl_module).items()}
        path = self.folder / f"diverged{own_rank() or ''}.pt"
        state = {name: tensor.cpu() for name, tensor in pl_module.state_dict().items()}
        saved = batch.to_dict() if hasattr(batch, "to_dict") else batch
        torch.save({"step": step, "batch": saved, "state_dict": state}, path)
        kappa = "; ".join(
            f"{name} = {', '.join(f'{value:.4g}' for value in values)}"
            for name, values in kappas.items()
        )
        raise DivergedError(
            f"not finite at step {step}: {place}; {kappa or 'no curvature'}; batch and weights are "
            f"in {path}"
        )


def check_weights(module: nn.Module) -> None:
    """Look at the weights that are about to be evaluated, which the last update may have spoilt.

    Raises:
        DivergedError: one is not finite.
    """
    tensors = [p.detach() for p in module.parameters()]
    if tensors and not torch.isfinite(get_total_norm(tensors, float("inf"))):
        broken = [name for name, p in module.named_parameters() if not torch.isfinite(p).all()]
        raise DivergedError(f"not finite{after_step(module)}: parameter {broken[0]}")


def _is_cheap_to_read(tensor: Tensor) -> bool:
    """Whether looking at a value does not wait for a device."""
    return tensor.device.type == "cpu"


def _is_finite(module: nn.Module, loss: Tensor) -> Tensor:
    """Whether loss and gradients are all finite, as a tensor on their device."""
    norm = get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
    return torch.isfinite(loss) & torch.isfinite(norm)


def first_of_step(module: LightningModule, batch: Any) -> str:
    """Say which parameter, module's output, or else which gradient is the first not finite."""
    losses: list[Tensor] = []
    found = first_non_finite(module, lambda: losses.append(loss_of_step(module, batch)))
    if found:
        return found
    if not torch.isfinite(losses[0]):
        return "the loss, from finite embeddings"
    gradients = [
        name
        for name, p in module.named_parameters()
        if p.grad is not None and not torch.isfinite(p.grad).all()
    ]
    # Backward runs from the last module to the first.
    return f"gradient of {gradients[-1]}" if gradients else "the norm of all gradients (overflow)"


def loss_of_step(module: LightningModule, batch: Any) -> Tensor:
    """The loss of a training step, not as a replay, which calls no hooks."""
    loss = type(module).training_step(module, batch, 0)
    assert isinstance(loss, Tensor)
    return loss

"""Steps on one graph, recorded once and replayed: a GPU gets two launches in place of hundreds.

On a small graph a kernel takes less time than its launch. Every step of a run on a whole graph
makes the same kernels at the same addresses and waits for none of them, which is what a CUDA graph
asks for. The kernels are those of other steps, and dropout draws the same numbers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.cuda import make_graphed_callables
from torch.nn.utils import get_total_norm

from curvlab.callbacks.finite_guard import loss_of_step
from curvlab.callbacks.reproducibility import random_state, set_random_state
from curvlab.errors import UsageError

KEY = "trainer.cuda_graph=true"

AGREEMENT = 1e-3
"""Largest relative difference of loss and gradient between a replayed step and another one."""

COMPARED = 2
"""Steps that are compared: what is made of a number that the processor counts differs then."""


class RecordedStep(nn.Module):
    """The loss of a training step on one graph, as the module without inputs that is recorded.

    Args:
        task: whose step it is.
        batch: the graph.
    """

    def __init__(self, task: LightningModule, batch: Any) -> None:
        super().__init__()
        self.task = task
        self.batch = batch

    def forward(self) -> Tensor:
        """The loss, a number."""
        return loss_of_step(self.task, self.batch)


class ReplaysSteps(Callback):
    """Replaces the training step by its recording before the first one; evaluations stay.

    A step that waits for the device, or whose replay is not the step, stays as it is, which is
    said. Weights, averages of norms and random numbers are what they would be without.

    Args:
        say: tells the user why nothing is recorded.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._tried = False

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Record the step.

        Raises:
            UsageError: CUDA refuses to record it.
        """
        if self._tried:
            return
        self._tried = True
        step = RecordedStep(pl_module, batch)
        with undone(pl_module):
            if (reason := _waits(step)) is not None:
                self._say(f"a step waits for the device ({reason})")
                return
        expected = _measured(step)
        try:
            with undone(pl_module):
                make_graphed_callables(step, (), allow_unused_input=True)
        except RuntimeError as error:
            raise UsageError(
                f"{KEY}: CUDA cannot record this step ({_first_line(error)}); leave it out"
            ) from error
        if not torch.allclose(_measured(step), expected, rtol=AGREEMENT, equal_nan=True):
            self._say("a replayed step differs from the step")
            return

        def replayed(other: Any, batch_idx: int) -> Tensor:  # noqa: ARG001 - Lightning's signature
            assert other is batch, "only the step on one graph is recorded"
            return step()

        pl_module.training_step = replayed  # type: ignore[method-assign]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the recording, and free its memory."""
        vars(pl_module).pop("training_step", None)


@contextmanager
def undone(module: nn.Module) -> Iterator[None]:
    """Take back what steps change beside gradients: buffers and the random numbers' state."""
    state = random_state()
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
        set_random_state(state)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Let CUDA refuse what waits for the device."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _waits(step: RecordedStep) -> str | None:
    """Where a step waits for the device, if it does; the first one, which sees the graph, may."""
    _made(step)
    try:
        with no_waiting():
            _made(step)
    except RuntimeError as error:
        return _first_line(error)
    return None


def _measured(step: RecordedStep) -> Tensor:
    """Loss and norm of the gradient of some steps without updates `[steps, 2]`, taken back."""
    with undone(step):
        return torch.stack([_made(step) for _ in range(COMPARED)])


def _made(step: RecordedStep) -> Tensor:
    """Loss and norm of the gradient of a step `[2]`, without leaving a gradient."""
    loss = step()
    weights = [p for p in step.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    norm = get_total_norm([gradient for gradient in gradients if gradient is not None])
    return torch.stack([loss.detach(), norm.to(loss.dtype)])


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

"""CUDA graphs: two launches per training step on a GPU instead of hundreds."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.cuda import make_graphed_callables
from torch.nn.utils import get_total_norm

from curvlab.callbacks.checkpoint import random_state, set_random_state
from curvlab.errors import UsageError

TOLERANCE = 1e-3
"""Largest relative difference of loss and gradient norm between a step and its replay."""

NUM_TEST_STEPS = 2
"""Number of steps to compare: a value that the CPU counts differs from the second step on."""


class RecordedStep(nn.Module):
    """The loss of a training step on one graph, as a module without inputs."""

    def __init__(self, task: LightningModule, batch: Any) -> None:
        super().__init__()
        self.task = task
        self.batch = batch

    def forward(self) -> Tensor:
        loss = type(self.task).training_step(self.task, self.batch, 0)
        assert isinstance(loss, Tensor)
        return loss


class CudaGraphs(Callback):
    """Records the first training step as a CUDA graph and replays it, dropout included."""

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if "training_step" in vars(pl_module):
            return
        step = RecordedStep(pl_module, batch)
        expected = _measure_steps(step)
        reason = ""
        try:
            with restoring(pl_module):
                make_graphed_callables(step, (), allow_unused_input=True)
            replay = _measure_steps(step)
            if not torch.allclose(replay, expected, rtol=TOLERANCE, equal_nan=True):
                reason = "a replayed step differs from the step"
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if reason:
            raise UsageError(f"trainer.cuda_graph=true: CUDA cannot record this step ({reason})")
        pl_module.training_step = lambda *_: step()  # type: ignore[method-assign]

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        vars(pl_module).pop("training_step", None)


@contextmanager
def restoring(module: nn.Module) -> Iterator[None]:
    """Restore a module's buffers and the random states at the end of the block."""
    state = random_state()
    copies = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, copy in copies:
                buffer.copy_(copy)
        set_random_state(state)


def _measure_steps(step: RecordedStep) -> Tensor:
    """Loss and gradient norm of some steps `[steps, 2]`, without side effects."""
    weights = [p for p in step.parameters() if p.requires_grad]
    rows = []
    with restoring(step):
        for _ in range(NUM_TEST_STEPS):
            loss = step()
            gradients = torch.autograd.grad(loss, weights, allow_unused=True)
            norm = get_total_norm([grad for grad in gradients if grad is not None])
            rows.append(torch.stack([loss.detach(), norm.to(loss.dtype)]))
    return torch.stack(rows)

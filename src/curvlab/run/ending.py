"""How a run ends that does not finish: by a signal at a checkpoint, or by an error."""

import traceback
from contextlib import suppress
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from curvlab.errors import DivergedError, UsageError, of_system, shortened
from curvlab.process import in_group
from curvlab.results.files import atomic_write
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.result import FILE, INTERRUPTED, Result
from curvlab.run import signals


class EndsBySignal(Callback):
    """Ends a training that was sent a signal after its next checkpoint, or when time is over.

    It must come after what writes the checkpoint. Processes of a group end in the same epoch: one
    that ended alone would leave the others waiting.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the signals back from Lightning."""
        signals.again()

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *_: Any, **__: Any) -> None:
        """Wait no longer for the checkpoint than the signal allows."""
        signals.check()

    on_validation_batch_end = on_train_batch_end

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End after the checkpoint, if a process of the group was sent a signal."""
        if in_group():
            sent = torch.tensor(int(signals.received() or 0), device=trainer.strategy.root_device)
            torch.distributed.all_reduce(sent, torch.distributed.ReduceOp.MAX)
            if sent.item():
                raise signals.Interrupted(int(sent.item()))
        signals.check(at_checkpoint=True)


def conclude(result: Result, error: Exception, folder: RunDirectory) -> None:
    """Write how a run ended that did not finish; what is refused replaces no other result."""
    memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    memory = memory or "can't allocate memory" in str(error)
    diverged = isinstance(error, DivergedError)
    result.status = "diverged" if diverged else "out_of_memory" if memory else "failed"
    result.error = one_sentence(error)
    if isinstance(error, OSError):
        step = folder.step()
        kept = f"its state after step {step} is kept" if step else "nothing was there before"
        way = "the same command goes on when that is mended"
        result.error = f"{of_system(error, folder.path)}; {kept}: {way}"
    if isinstance(error, UsageError) and folder.has_ended():
        return
    with suppress(OSError):
        folder.prepare(result, fresh=False)
        if result.status == "failed" and not isinstance(error, UsageError):
            atomic_write(folder.path / TRACEBACK, "".join(traceback.format_exception(error)))
        result.write(folder.path)


def interrupted(error: signals.Interrupted, result: Result, folder: RunDirectory) -> None:
    """Write that a signal has ended a run, unless its result is there, and say so."""
    name = error.signal.name
    if folder.conclusion(result.config_hash) is not None:
        signals.say(f"ended by {name} after {folder.path / FILE} was written")
        return
    result.status, result.steps = INTERRUPTED, folder.step()
    result.error = f"{name} ended it; the same command goes on from step {result.steps}"
    signals.say(f"ended by {name}; the same command goes on from step {result.steps}")
    if folder.is_own(result.config_hash):
        result.write(folder.path)


def one_sentence(error: Exception) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    expected = isinstance(error, UsageError | DivergedError)
    return shortened(text if expected else f"{type(error).__name__}: {text}")

"""Early ends of a run: an error or a signal, which the result file names."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from curvlab.errors import DivergedError, UsageError, error_sentence, system_message
from curvlab.files import atomic_write
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.result import FILE, INTERRUPTED, Result
from curvlab.run import signals


class RunFailedError(RuntimeError):
    """A single run ended without a score; its result file says why."""


@contextmanager
def early_ends_written(result: Result, folder: RunDirectory, multirun: bool) -> Iterator[None]:
    """Write the result of a run that an error or a signal ends within the block.

    A sweep continues after an error. A single run raises a `UsageError` or a `RunFailedError`, or
    the error itself if neither a value nor the disk caused it.
    """
    try:
        yield
    except signals.Interrupted as error:
        write_interrupted(error, result, folder)
        raise
    except Exception as error:
        is_reported = isinstance(error, UsageError | RunFailedError)
        if is_reported and not multirun:
            raise
        conclude(result, error, folder)
        if not multirun:
            if result.status == "failed" and not isinstance(error, OSError):
                raise
            raise RunFailedError(result.error) from error


def conclude(result: Result, error: Exception, folder: RunDirectory) -> None:
    """Write how an unfinished run ended, unless the folder has a result that ranks higher."""
    out_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    result.status = "failed"
    if isinstance(error, DivergedError):
        result.status = "diverged"
    elif out_of_memory or "can't allocate memory" in str(error):
        result.status = "out_of_memory"
    result.error = error_sentence(error)
    if isinstance(error, OSError):
        step = folder.step()
        state = f"the state after step {step} is kept" if step else "there is no earlier state"
        remedy = "fix this and run the same command to resume"
        result.error = f"{system_message(error, folder.path)}; {state}: {remedy}"
    if isinstance(error, UsageError) and folder.conclusion():
        return
    with suppress(OSError):
        folder.prepare(result, fresh=False)
        if result.status == "failed" and not isinstance(error, UsageError):
            atomic_write(folder.path / TRACEBACK, "".join(traceback.format_exception(error)))
        result.write(folder.path)
        folder.restore_finished(result.config_hash)


def write_interrupted(error: signals.Interrupted, result: Result, folder: RunDirectory) -> None:
    """Write and report that a signal has ended a run that has no result yet."""
    name = error.signal.name
    if folder.conclusion(result.config_hash) is not None:
        signals.say(f"ended by {name} after {folder.path / FILE} was written")
        return
    result.status = INTERRUPTED
    result.steps = folder.step()
    result.error = f"{name} ended it; the same command resumes from step {result.steps}"
    signals.say(f"ended by {name}; the same command resumes from step {result.steps}")
    if folder.config_hash == result.config_hash:
        result.write(folder.path)


class EndsBySignal(Callback):
    """Ends training after a signal, when the next checkpoint is written."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Restore the handlers that Lightning has replaced."""
        signals.restore()

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *_: Any, **__: Any) -> None:
        """End without a checkpoint if the signal's time is over."""
        signals.check()

    on_validation_batch_end = on_train_batch_end

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End after the checkpoint if a process of the group has received a signal."""
        own_signal = int(signals.last_signal() or 0)
        signal = torch.tensor(own_signal, device=trainer.strategy.root_device)
        group_signal = int(trainer.strategy.reduce(signal, reduce_op="max"))
        if group_signal:
            raise signals.Interrupted(group_signal)

"""One run, from a configuration to its result file."""

import os
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from curvlab.config.options import decides, validate
from curvlab.config.resolvers import data_name
from curvlab.errors import DivergedError, UsageError, one_sentence, system_message
from curvlab.results.files import atomic_write
from curvlab.results.folder import TRACEBACK, RunDirectory
from curvlab.results.identity import identity_hash, revisions_of, stored_config
from curvlab.results.leases import Holder
from curvlab.results.result import FILE, INTERRUPTED, Result
from curvlab.run import reporting, signals
from curvlab.run.fit import CheckpointError, run
from curvlab.run.reporting import say, shown


class RunFailedError(RuntimeError):
    """A single run ended without a score; its result file says how."""


def train(config: DictConfig) -> Result:
    """Run one configuration: prepare, train, evaluate once, plot, write the result.

    A run that has ended anywhere below `paths.output_dir` is copied unless `rerun=true`. In a sweep
    an error is written to the cell's result; alone, `UsageError` or `RunFailedError` is raised.
    """
    hydra = HydraConfig.get()
    folder = RunDirectory(Path(hydra.runtime.output_dir))
    # Overrides against the table that the command names, but for choices of its cells.
    words = {str(word).lstrip("+").partition("=")[0]: str(word) for word in hydra.overrides.task}
    swept, what = hydra.sweeper.params or {}, stored_config(config)
    changed = [word.lstrip("+") for k, word in words.items() if k not in swept and decides(k, what)]
    if "table" not in words:
        changed = []
    return train_in(config, folder, hydra.mode == RunMode.MULTIRUN, sorted(changed))


def train_in(
    config: DictConfig, folder: RunDirectory, multirun: bool, changed: Sequence[str] = ()
) -> Result:
    """`train` in a given folder; a run of a sweep does not wait for another process."""
    result = describe(config)
    result.changed = list(changed)

    def wait(holder: Holder) -> None:
        say(f"{holder} is at work in {shown(folder.path)}: waiting for its end")

    with folder.locked(None if multirun else wait):
        outputs = Path(config.paths.output_dir)
        link = outputs / f".latest.{os.getpid()}"
        with suppress(OSError, ValueError):  # a system without links
            link.symlink_to(folder.path.resolve().relative_to(outputs.resolve()))
            link.replace(outputs / "latest")
        try:
            if not config.rerun and (done := _finished_before(config, result, folder)) is not None:
                if done.status != "finished" and not multirun:
                    raise RunFailedError(
                        f"{done.error} (so ended an earlier run; rerun=true repeats it)"
                    )
                reporting.report_run(done, folder.path, already=True)
                return done
            validate(config)
            for path, reason in folder.discard_damaged().items():
                way = f"goes on from {folder.newest.name}" if folder.newest else "starts over"
                say(f"{shown(path)} was damaged ({reason}): the run {way}")
            own = folder.config_hash == result.config_hash and not config.rerun
            checkpoint = folder.newest if own else None
            try:
                run(config, result, folder, checkpoint)
            except (DivergedError, CheckpointError) as error:
                if checkpoint is None:
                    raise
                say(  # a disk may have spoilt the checkpoint
                    f"{type(error).__name__} after going on from a checkpoint: the run is repeated "
                    f"once from its start before this is its result ({error})"
                )
                folder.drop_last()
                run(config, result, folder, None)
            folder.drop_last()
        except signals.Interrupted as error:
            write_interrupted(error, result, folder)
            raise
        except Exception as error:
            refused = isinstance(error, UsageError | RunFailedError)
            if refused and not multirun:
                raise
            conclude(result, error, folder)
            if not multirun:
                if result.status == "failed" and not isinstance(error, OSError):
                    raise
                raise RunFailedError(result.error) from error
        reporting.report_run(result, folder.path)
    return result


def _finished_before(config: DictConfig, result: Result, folder: RunDirectory) -> Result | None:
    """The finished result of the same run, from this folder or copied from another.

    With a logger only this folder counts: it shall see every cell of its table.
    """
    folder.restore(result.config_hash)
    done = folder.conclusion(result.config_hash)
    if done is not None or config.logger or "search" in config or "study" in config:
        return done
    other = folder.elsewhere(Path(config.paths.output_dir), result.config_hash)
    if other is None:
        return None
    say(f"copying the same run from {shown(other.path)}")
    return folder.take_over(other, result)


def conclude(result: Result, error: Exception, folder: RunDirectory) -> None:
    """Write how an unfinished run ended; a refusal replaces no other result."""
    memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    memory = memory or "can't allocate memory" in str(error)
    diverged = isinstance(error, DivergedError)
    result.status = "diverged" if diverged else "out_of_memory" if memory else "failed"
    result.error = one_sentence(error)
    if isinstance(error, OSError):
        step = folder.step()
        kept = f"its state after step {step} is kept" if step else "nothing was there before"
        way = "the same command goes on when that is mended"
        result.error = f"{system_message(error, folder.path)}; {kept}: {way}"
    if isinstance(error, UsageError) and folder.conclusion():
        return
    with suppress(OSError):
        folder.prepare(result, fresh=False)
        if result.status == "failed" and not isinstance(error, UsageError):
            atomic_write(folder.path / TRACEBACK, "".join(traceback.format_exception(error)))
        result.write(folder.path)


def write_interrupted(error: signals.Interrupted, result: Result, folder: RunDirectory) -> None:
    """Write and report that a signal has ended a run, unless its result exists."""
    name = error.signal.name
    if folder.conclusion(result.config_hash) is not None:
        signals.say(f"ended by {name} after {folder.path / FILE} was written")
        return
    result.status, result.steps = INTERRUPTED, folder.step()
    result.error = f"{name} ended it; the same command goes on from step {result.steps}"
    signals.say(f"ended by {name}; the same command goes on from step {result.steps}")
    if folder.config_hash == result.config_hash:
        result.write(folder.path)


def describe(config: DictConfig) -> Result:
    """The result of a run that has not started."""
    what = stored_config(config)
    return Result(
        status="failed",
        model=config.model.name,
        dataset=data_name(_root_=config),
        task=config.task.name,
        manifold=config.manifold.name,
        seed=config.seed,
        experiment=config.experiment,
        config_hash=identity_hash(what),
        config=what,
        revisions=revisions_of(what),
    )

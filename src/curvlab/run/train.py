"""One run, from a configuration to its result file."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from curvlab.config.options import decides
from curvlab.config.rules import validate
from curvlab.errors import UsageError
from curvlab.finite import DivergedError
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import identity_hash, revisions_of, stored
from curvlab.results.result import FILE, INTERRUPTED, Result, read_result
from curvlab.run import reporting, signals
from curvlab.run.ending import conclude, interrupted, refused
from curvlab.run.fit import CheckpointError, run
from curvlab.run.sweep import role, written_since


class RunFailedError(RuntimeError):
    """A single run that ended without a score; its result file says how."""


def train(config: DictConfig) -> Result:
    """Run one configuration: prepare, train, evaluate once, plot, write the result.

    A configuration that has a finished (or diverged) result in its folder is not run again unless
    `rerun=true`, nor is the cell of a table that is one of another table as well: its result is
    copied. An interrupted run goes on from its last checkpoint. In a sweep, an error that ends a
    cell is written to its result and the sweep goes on.

    Args:
        config: the composed configuration.

    Raises:
        UsageError: the configuration is wrong (single run).
        RunFailedError: the run diverged or ran out of memory (single run).
        Interrupted: a signal has ended the run; its result says so.
        HeldError: another worker is at the cell (in a sweep).
    """
    hydra = HydraConfig.get()
    multirun = hydra.mode == RunMode.MULTIRUN
    folder = RunDirectory(Path(hydra.runtime.output_dir))
    return train_in(config, folder, multirun, changed_words(hydra, config), waits=not multirun)


def train_in(
    config: DictConfig,
    folder: RunDirectory,
    multirun: bool,
    changed: Sequence[str] = (),
    waits: bool = True,
) -> Result:
    """`train` in a given folder, as one run of a sweep or alone (see `changed_words`).

    Args:
        config: as of `train`.
        folder: the run's.
        multirun: whether it is one run of a sweep.
        changed: as of `changed_words`.
        waits: for the end of another process that is at work in the folder.

    Raises:
        HeldError: there is one, and it shall not be waited for.
    """
    result = describe(config)
    result.changed = list(changed)
    with folder.claimed(partial(reporting.waiting, folder.path) if waits else None):
        _link_latest(folder.path, Path(config.paths.output_dir))
        return _train(config, result, folder, multirun)


def _link_latest(folder: Path, outputs: Path) -> None:
    """Make `outputs/latest` a link to a run's folder, where the system has links."""
    link = outputs / f".latest.{os.getpid()}"
    with suppress(OSError, ValueError):
        link.symlink_to(folder.resolve().relative_to(outputs.resolve()))
        link.replace(outputs / "latest")


def _train(config: DictConfig, result: Result, folder: RunDirectory, multirun: bool) -> Result:
    """Do what is left to do in a run's folder."""
    try:
        if (done := _ended_in_this_sweep(result, folder)) is not None:
            return done  # whoever ran it has said so
        done = None if config.rerun else _ended_before(config, result, folder)
        if done is not None:
            if done.status != "finished" and not multirun:
                raise RunFailedError(
                    f"{done.error} (so ended an earlier run; rerun=true repeats it)"
                )
            if role() != "worker":  # of which each comes by
                reporting.already_done(done, folder.path)
            return done
        validate(config)
        for path, reason in folder.discard_damaged().items():
            reporting.damaged(path, reason, folder.newest)
        aged = [] if config.rerun else folder.aged()
        if aged:
            reporting.aged(folder.checkpoint, aged)
        checkpoint = folder.prepare(result, fresh=config.rerun)
        _run_to_conclusion(config, result, folder, checkpoint)
        folder.drop_last()
    except signals.Interrupted as error:
        interrupted(error, result, folder)
        raise
    except Exception as error:
        if isinstance(error, UsageError | RunFailedError) and not multirun:
            folder.undo()
            raise
        with suppress(OSError):  # of a disk that is full; the result says so to a sweep
            conclude(result, error, folder)
        if isinstance(error, OSError):
            result.status, result.error = "failed", refused(error, folder)
        elif result.status == "failed" and not multirun:
            raise
        if not multirun:
            raise RunFailedError(result.error) from error
    reporting.finished(result, folder.path)
    return result


def _run_to_conclusion(
    config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> None:
    """Run; what has diverged or cannot go on from a checkpoint is repeated once from the start.

    That a run diverges is the last word about it, so it shall not rest on what a disk has kept.
    """
    try:
        run(config, result, folder, checkpoint)
    except (DivergedError, CheckpointError) as error:
        if checkpoint is None:
            raise
        reporting.repeating(error)
        folder.start_over()
        run(config, result, folder, None)


def _ended_in_this_sweep(result: Result, folder: RunDirectory) -> Result | None:
    """How a worker of the same sweep has ended the cell, with or without a score.

    So a cell that fails is not tried by one worker after the other.
    """
    done = read_result(folder.path) if written_since(folder.path / FILE) else None
    if done is None or done.status == INTERRUPTED:
        return None
    own = identity_hash(done.config, done.revisions)
    return done if own == result.config_hash else None


def _ended_before(config: DictConfig, result: Result, folder: RunDirectory) -> Result | None:
    """How the same configuration ended, in this folder or as a cell of another table."""
    folder.recall(result.config_hash)
    done = folder.conclusion(result.config_hash)
    if done is None and not config.logger:  # which shall see every cell of its table
        twin = folder.twin(Path(config.paths.output_dir, "tables"), result.config_hash)
        if twin is not None:
            reporting.copying(twin)
            done = folder.copy_from(twin, result)
    if done is None and not config.logger and config.experiment is None:
        done = _found_elsewhere(config, result, folder)
    return done


def _found_elsewhere(config: DictConfig, result: Result, folder: RunDirectory) -> Result | None:
    """How the same run ended that other words chose; one that was interrupted goes on here."""
    other = folder.elsewhere(Path(config.paths.output_dir), result.config_hash)
    if other is None:
        return None
    if other.conclusion(result.config_hash):
        reporting.copying(other.path)
        return folder.copy_from(other.path, result)
    if folder.newest is None:
        reporting.copying(other.path)
        folder.take_from(other)
    return None


def changed_words(hydra: HydraConf, config: DictConfig) -> list[str]:
    """What the command line says against the table that it names, sorted; without a table nothing.

    Not which of the table's cells it runs, nor what decides no result.
    """
    words = [str(word).lstrip("+") for word in hydra.overrides.task]
    keys = [word.partition("=")[0] for word in words]
    if "table" not in keys:
        return []
    swept, what = hydra.sweeper.params or {}, stored(config)
    return sorted(
        word
        for key, word in zip(keys, words, strict=True)
        if key not in swept and decides(key, what)
    )


def describe(config: DictConfig) -> Result:
    """The result of a run that has not started."""
    what = stored(config)
    return Result(
        status="failed",
        model=config.model.name,
        dataset=config.dataset.name,
        task=config.task.name,
        manifold=config.manifold.name,
        seed=config.seed,
        experiment=config.experiment,
        config_hash=identity_hash(what),
        config=what,
        revisions=revisions_of(what),
    )

"""One run, from a configuration to its result file."""

import math
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import lightning
import torch
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from curvlab.callbacks import (
    Curves,
    DivergedError,
    FiniteGuard,
    LastCheckpoint,
    PointShares,
    RandomState,
    RunProgress,
    StepTimer,
    check_weights,
    curvatures,
)
from curvlab.config.resolvers import register_resolvers
from curvlab.config.rules import validate
from curvlab.errors import UsageError, of_system, shortened
from curvlab.layers.compilation import compile_parts
from curvlab.process import default_dtype
from curvlab.results.files import atomic_write
from curvlab.results.folder import EARLIER, TRACEBACK, RunDirectory
from curvlab.results.identity import decides, identity_hash, revisions_of, stored
from curvlab.results.result import (
    FILE,
    INTERRUPTED,
    Result,
    git_commit,
    package_versions,
    read_result,
)
from curvlab.run import reporting, signals
from curvlab.run.checkpoints import by_part, save_best
from curvlab.run.distributed import launch
from curvlab.run.ending import EndsBySignal
from curvlab.run.group import on_this_machine
from curvlab.run.hardware import (
    check_sync_batch_norm,
    peak_memory_mb,
    prepare_determinism,
    prepare_processor,
    reset_peak_memory,
    trainer_accelerator,
    trainer_devices,
)
from curvlab.run.parts import (
    build_data,
    build_logger,
    build_selection,
    build_task,
    build_trainer,
    idle_sync_batch_norm,
)
from curvlab.run.sweep import role, written_since

PICTURED_NODES = 100_000
"""Of larger graphs no embedding is saved and drawn, which would take longer than many a run."""


class RunFailedError(RuntimeError):
    """A single run that ended without a score; its result file says how."""


class CheckpointError(RuntimeError):
    """A checkpoint is whole and of this run, but of other code."""


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
        return _train(config, result, folder, multirun)


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
        _interrupted(error, result, folder)
        raise
    except Exception as error:
        if isinstance(error, UsageError | RunFailedError) and not multirun:
            folder.undo()
            raise
        with suppress(OSError):  # of a disk that is full; the result says so to a sweep
            conclude(result, error, folder)
        if isinstance(error, OSError):
            result.status, result.error = "failed", _refused(error, folder)
            if not multirun:
                raise RunFailedError(result.error) from error
        if not multirun and result.status == "failed":
            raise
        if not multirun:
            raise RunFailedError(result.error) from error
    reporting.finished(result, folder.path)
    return result


def _refused(error: OSError, folder: RunDirectory) -> str:
    """What the system refused a run, and what is kept of it."""
    step = folder.step()
    kept = f"its state after step {step} is kept" if step else "nothing of it was begun before"
    return f"{of_system(error, folder.path)}; {kept}: the same command goes on when that is mended"


def _run_to_conclusion(
    config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> None:
    """Run; what has diverged or cannot go on from a checkpoint is repeated once from the start.

    That a run diverges is the last word about it, so it shall not rest on what a disk has kept.
    """
    try:
        _run(config, result, folder, checkpoint)
    except (DivergedError, CheckpointError) as error:
        if checkpoint is None:
            raise
        reporting.repeating(error)
        folder.start_over()
        _run(config, result, folder, None)


def _interrupted(error: signals.Interrupted, result: Result, folder: RunDirectory) -> None:
    """Write that a signal has ended a run, unless its result is there, and say so."""
    name, done = error.signal.name, folder.conclusion(result.config_hash)
    if done is not None:
        signals.say(f"ended by {name} after {folder.path / FILE} was written")
        return
    result.status, result.steps = INTERRUPTED, folder.step()
    result.error = f"{name} ended it; the same command goes on from step {result.steps}"
    signals.say(f"ended by {name}; the same command goes on from step {result.steps}")
    if folder.is_own(result.config_hash):
        result.write(folder.path)


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
    return done


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


def conclude(result: Result, error: Exception, folder: RunDirectory) -> None:
    """Write how a run ended that did not finish, and where in the code if that is a surprise."""
    result.status, result.error = _status(error), one_sentence(error)
    if isinstance(error, UsageError) and folder.undo():
        return  # a refusal, which displaces no result of other settings
    folder.prepare(result, fresh=False)
    if result.status == "failed" and not isinstance(error, UsageError):
        atomic_write(folder.path / TRACEBACK, "".join(traceback.format_exception(error)))
    result.write(folder.path)


def _run(
    config: DictConfig,
    result: Result,
    folder: RunDirectory,
    checkpoint: Path | None,
) -> None:
    """Train and evaluate, in a process a device; fill in the result and write it."""
    devices = config.trainer.devices
    if devices == 1:
        _run_process(0, config, result, folder, checkpoint)
        return
    options = config.trainer
    trainer_devices(options.accelerator, on_this_machine(devices))
    check_sync_batch_norm(options.sync_batch_norm, options.accelerator)
    build_data(config).prepare_data()
    launch(_run_process, devices, config, result, folder, checkpoint)
    written = read_result(folder.path)
    assert written is not None
    vars(result).update(vars(written))


def _run_process(
    rank: int,
    config: DictConfig,
    result: Result,
    folder: RunDirectory,
    checkpoint: Path | None,
) -> None:
    """Train in one of the run's processes; the first one evaluates and writes the result."""
    register_resolvers()
    prepare_processor(config.trainer.threads, on_this_machine(config.trainer.devices))
    options = config.trainer
    result.deterministic = prepare_determinism(options.deterministic, options.accelerator)
    reset_peak_memory()
    with default_dtype(config.trainer.precision):
        _fit(rank == 0, config, result, folder, checkpoint)


def _fit(
    first: bool,
    config: DictConfig,
    result: Result,
    folder: RunDirectory,
    checkpoint: Path | None,
) -> None:
    """Build, train and evaluate what a configuration says."""
    lightning.seed_everything(config.seed, workers=True, verbose=False)
    data = build_data(config)
    task = build_task(config, data)
    options = config.trainer
    if options.compile:
        compile_parts(task, trainer_accelerator(options.accelerator, options.precision))
    curves = Curves(folder.path / "metrics.csv")
    timer = StepTimer()
    best = build_selection(config, data) if task.chooses_weights else None
    facts = {name: getattr(result, name) for name in ("config", "schema", "revisions")}
    versions = {"versions": package_versions(), "git_commit": git_commit() if first else None}
    last = LastCheckpoint(folder.checkpoint, folder.path / EARLIER, facts | versions)
    label = f"{config.model.label} on {config.dataset.label}, seed {config.seed}"
    callbacks = [
        curves,
        timer,
        RandomState(),
        PointShares(),
        FiniteGuard(folder.path, interval=config.trainer.steps_per_epoch),
        RunProgress(curves, label, shown=config.trainer.progress),
        *([best] if best else []),
        last,  # after those whose state it holds
        EndsBySignal(),
    ]
    resumed = checkpoint is not None
    reporting.starting(label, result, folder.path, resumed)
    if (reason := idle_sync_batch_norm(config, task)) is not None:
        reporting.without_effect("trainer.sync_batch_norm=true", reason)
    at = folder.step() if resumed else None
    open_logger = build_logger(config, result, folder.path, at) if first else nullcontext()
    with open_logger as logger, reporting.quiet():
        shared = options.sync_batch_norm
        trainer = build_trainer(config, folder.path, callbacks, logger, sync_batchnorm=shared)
        try:
            trainer.fit(task, datamodule=data, ckpt_path=checkpoint, weights_only=True)
        except Exception as error:
            if checkpoint is None or last.started:
                raise
            raise CheckpointError(f"{checkpoint} does not fit: {one_sentence(error)}") from error
        result.best_step = result.steps = trainer.global_step
        if best:
            result.best_step = best.step
            best.restore(task)
        check_weights(task)
        (scores,) = trainer.test(task, datamodule=data, verbose=False)
        if not first:
            return
        result.metrics = by_part(scores)
        result.score = result.metrics["test"][task.score]
        if math.isnan(result.score):
            raise DivergedError(f"test/{task.score} is not a number at step {result.best_step}")
        result.val_score = result.metrics["val"][task.score] if best else None
        tail = None if best else curves.tail_mean(task.score)
        if tail is not None:
            result.metrics["test"][f"{task.score}_tail"] = tail
        if logger is not None:
            # What reports on W&B compare.
            logger.log_metrics({"score": result.score}, step=trainer.global_step)
        result.parameters = sum(p.numel() for p in task.parameters())
        result.curvatures = {name: kappa.tolist() for name, kappa in curvatures(task).items()}
        result.ms_per_step = timer.ms_per_step
        result.wall_seconds = timer.wall_seconds
        result.peak_memory_mb = peak_memory_mb()
        result.device = str(trainer.strategy.root_device)
        result.threads = torch.get_num_threads()
        if hasattr(task, "save"):
            task.save(data.graph, folder.path)
        elif data.num_nodes <= PICTURED_NODES:
            reporting.save_embeddings(task.encoder, data.graph, folder.path)
            reporting.save_filters(task, data.graph, folder.path)
            task.report(data.graph, folder.path)
        with signals.held_back():
            save_best(folder.path, task, data, config, result)
            result.status = "finished"
            result.write(folder.path)
        reporting.log_routing(folder.path, logger)
        reporting.log_histograms(result, folder.path, logger)
        if config.trainer.plots:
            reporting.draw(label, folder.path, logger)


def _status(error: Exception) -> str:
    """How a run ended that did not finish."""
    if isinstance(error, DivergedError):
        return "diverged"
    memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
    if memory or "can't allocate memory" in str(error):
        return "out_of_memory"
    return "failed"


def one_sentence(error: Exception) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    expected = isinstance(error, UsageError | DivergedError)
    return shortened(text if expected else f"{type(error).__name__}: {text}")

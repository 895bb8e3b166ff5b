"""One run, from a configuration to its result file, with one process per device."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lightning
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning import Callback, Trainer
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig

from curvlab.callbacks import (
    CudaGraphs,
    Curves,
    EncoderStatistics,
    FiniteGuard,
    LastCheckpoint,
    RandomState,
    RunProgress,
    StepTimer,
    check_weights,
    curvatures,
)
from curvlab.compilation import compile_parts
from curvlab.config.building import name_keys_in_errors
from curvlab.config.resolvers import register_resolvers
from curvlab.config.trust import trust
from curvlab.cpp import choose_kernels, kernel_kind
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.errors import (
    NO_SHARED_MEMORY,
    CheckpointError,
    DivergedError,
    UsageError,
    error_sentence,
    lacks_shared_memory,
)
from curvlab.leases import SUFFIX, Holder, fenced
from curvlab.process import default_dtype
from curvlab.program import print_if_slow
from curvlab.results.folder import EARLIER, LAST, Claim, RunDirectory
from curvlab.results.identity import FILES
from curvlab.results.result import Result
from curvlab.run import reporting, signals
from curvlab.run.command import Command
from curvlab.run.endings import EndsBySignal, RunFailedError, early_ends_written
from curvlab.run.group import launch, local_devices
from curvlab.run.hardware import choose_device, peak_memory_mb, prepare_process
from curvlab.run.messages import write_run
from curvlab.run.parts import (
    build_data,
    build_logger,
    build_selection,
    build_task,
    build_trainer,
    check_user_files,
    evaluate_parts,
    prepare_data,
    save_best,
)
from curvlab.run.references import references_of
from curvlab.run.reporting import relative_path, say
from curvlab.tasks.task import Task

KERNEL_STEPS = 500
"""Fewest steps of a run for which C++ kernels are compiled, which takes some seconds."""


def train(command: Command) -> Result:
    """Train, evaluate once, plot, and write the result, as a job of Hydra's.

    A run that has ended in any folder below `paths.output_dir` is copied unless `rerun=true`. In a
    sweep an error is written to the cell's result; a single run raises `UsageError` or
    `RunFailedError`.
    """
    hydra = HydraConfig.get()
    folder = RunDirectory(Path(hydra.runtime.output_dir))
    return train_in(command, folder, hydra.mode == RunMode.MULTIRUN)


def train_in(command: Command, folder: RunDirectory, multirun: bool) -> Result:
    """`train` in a given folder; a run of a sweep does not wait for another process."""
    config = command.config
    result = command.initial_result()

    def wait(holder: Holder) -> None:
        say(f"{holder} is at work in {relative_path(folder.path)}: waiting for its end")

    with folder.locked(None if multirun else wait):
        with early_ends_written(result, folder, multirun):
            check_user_files(config, result.config.get(FILES, {}))
            claim = folder.claim(result, command.outputs, config.rerun)
            if claim.source is not None:
                say(f"copying the same run from {relative_path(claim.source)}")
            if claim.result is not None:
                _link_latest(folder.path, config)
                if folder.is_unclosed:
                    _close(config, folder)
                return _ended_before(claim.result, folder.path, multirun)
            command.check()
            _run_from(claim, config, result, folder)
        reporting.report_run(result, folder.path, in_sweep=multirun)
    return result


def _link_latest(folder: Path, config: DictConfig) -> None:
    """Let `latest` in the outputs lead to a run's folder."""
    outputs = Path(config.paths.output_dir)
    link = outputs / f".latest.{os.getpid()}"
    with suppress(OSError, ValueError):  # a system without links
        link.symlink_to(folder.resolve().relative_to(outputs.resolve()))
        link.replace(outputs / "latest")


def _close(config: DictConfig, folder: RunDirectory) -> None:
    """Draw the pictures of a run that was killed after it wrote its result; delete `last.ckpt`."""
    label = label_of_run(config)
    say(f"{label}: ended before its pictures were drawn and its last checkpoint was deleted")
    if config.trainer.plots:
        reporting.draw(label, folder.path, logger=None)
    folder.drop_last()


def _ended_before(result: Result, folder: Path, multirun: bool) -> Result:
    """Report a run that has ended already; a single one without a score is an error."""
    if result.status != "finished" and not multirun:
        raise RunFailedError(f"{result.error} (so ended an earlier run; rerun=true repeats it)")
    reporting.report_run(result, folder, already=True, in_sweep=multirun)
    return result


def _run_from(claim: Claim, config: DictConfig, result: Result, folder: RunDirectory) -> None:
    """Run from a checkpoint or from the start; once more from the start if a checkpoint fails."""
    for path, reason in claim.damaged.items():
        restart = f"resumes from {folder.newest.name}" if folder.newest else "starts over"
        say(f"{relative_path(path)} was damaged ({reason}): the run {restart}")
    try:
        run(config, result, folder, claim.checkpoint)
    except (DivergedError, CheckpointError) as error:
        if claim.checkpoint is None:
            raise
        say(  # a disk may have spoilt the checkpoint
            f"{type(error).__name__} after resuming from a checkpoint: the run is repeated once "
            f"from its start before this is its result ({error})"
        )
        folder.drop_last()
        run(config, result, folder, None)
    folder.drop_last()


def run(config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None) -> None:
    """Train and evaluate, in one process per device; fill in the result and write it."""
    if config.trainer.devices == 1:
        run_process(0, config, result, folder, checkpoint)
        return
    with default_dtype(config.trainer.precision):
        prepare_data(config)  # once, so that the processes find files and caches
    arguments = config, result, folder, checkpoint
    message = write_run(*arguments)
    finished = launch(run_process, config.trainer.devices, *arguments, message=message)
    vars(result).update(vars(finished))


def run_process(
    rank: int, config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> Result:
    """Build, fit, evaluate, write: in each process; only the first one prints and writes."""
    first = rank == 0
    options = config.trainer
    label = label_of_run(config)
    with _process_of_run(config, folder) as device:
        # Build.
        with print_if_slow(f"{label}: preparing the data"):
            data = build_data(config)
            task = build_task(config, data)
        if options.compile:
            compile_parts(task, device)
        if first:  # not before: what cannot be built displaces no other result
            folder.prepare(result, fresh=config.rerun)
            _link_latest(folder.path, config)
        start = "resuming from the last checkpoint" if checkpoint else "starting"
        say(f"{label}, {result.manifold}: {start} in {relative_path(folder.path)}")
        curves = Curves(folder.path / "metrics.csv")
        timer = StepTimer()
        best = build_selection(config, data) if task.selects_checkpoint else None
        facts = {name: getattr(result, name) for name in ("config", "schema", "revisions")}
        last = LastCheckpoint(folder.path / LAST, folder.path / EARLIER, facts)
        callbacks = [
            curves,
            timer,
            RandomState(same_on_all_ranks=task.shares_loss and options.devices > 1),
            EncoderStatistics(),
            FiniteGuard(options.steps_per_epoch),
            RunProgress(curves, label, visible=options.progress and first),
            *([best] if best else []),
            *_cuda_graphs(options.cuda_graph, device),
            last,  # after those whose state it holds
            EndsBySignal(),
        ]
        logger_options = config.logger if first else None
        resumed_at = folder.step() if checkpoint and first else None
        open_logger = build_logger(logger_options, result, folder.path, resumed_at)
        with open_logger as logger, reporting.quiet():
            # Fit.
            trainer = build_trainer(config, device, folder.path, callbacks, logger)
            _fit(trainer, task, data, checkpoint, last)
            result.best_step = result.steps = trainer.global_step
            if best:
                result.best_step = best.step
                best.restore(task)
            check_weights(task)

            # Evaluate.
            with print_if_slow(f"{label}: evaluating"):
                result.metrics = evaluate_parts(trainer, task, data)
            if not first:
                return result
            result.score = result.metrics["test"][task.score]
            tail = None if best else curves.tail_mean(task.score)
            if best:
                result.val_score = result.metrics["val"][task.score]
            if tail is not None:
                result.metrics["test"][f"{task.score}_tail"] = tail
            if options.references:
                result.references = references_of(task, data, result, config)

            # Write.
            result.device = str(trainer.strategy.root_device)
            _note_costs(result, task, timer)
            task.write_files(data.graph, folder.path)
            with signals.wait():
                save_best(folder.path, task, data, config, result)
                result.status = "finished"
                result.write(folder.path)
            if logger is not None:
                reporting.log_result(result, logger)
            if options.plots:
                with print_if_slow(f"{label}: drawing"):
                    reporting.draw(label, folder.path, logger)
    return result


def label_of_run(config: DictConfig) -> str:
    """Model, data set and seed, as lines about a run begin."""
    return f"{config.model.label} on {config.dataset.label}, seed {config.seed}"


@contextmanager
def _process_of_run(config: DictConfig, folder: RunDirectory) -> Iterator[torch.device]:
    """Prepare this process for a run, and yield the device that it uses within the block."""
    register_resolvers()
    trust(config)
    options = config.trainer
    device = choose_device(options.accelerator, options.precision)
    prepare_process(options.threads, device, local_devices(options.devices))
    long = options.compile or options.max_steps >= KERNEL_STEPS
    choose_kernels(options.kernels if long else "plain")
    parts = config.dataset.source, config.task.get("split") or config.split
    fence = fenced(folder.path / SUFFIX)  # of the lease that the run's first process holds
    with fence, default_dtype(options.precision), name_keys_in_errors(*parts):
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        yield device


def _fit(
    trainer: Trainer,
    task: Task,
    data: GraphDataModule,
    checkpoint: Path | None,
    last: LastCheckpoint,
) -> None:
    """Fit; a refusal by Lightning is a `UsageError`, one of a checkpoint a `CheckpointError`."""
    try:
        with signals.wait():
            trainer.fit(task, datamodule=data, ckpt_path=checkpoint, weights_only=True)
    except MisconfigurationException as error:  # of a callback or a key of the user's
        raise UsageError(f"Lightning refuses this: {error_sentence(error)}") from error
    except Exception as error:
        if lacks_shared_memory(error):
            raise UsageError(NO_SHARED_MEMORY) from error
        if checkpoint is None or last.has_started:
            raise
        raise CheckpointError(f"{checkpoint} does not fit: {error_sentence(error)}") from error


def _cuda_graphs(enabled: bool, device: torch.device) -> list[Callback]:
    """The callback that records steps, if it is enabled and the run is on a GPU."""
    if not enabled:
        return []
    if device.type != "cuda":
        say("trainer.cuda_graph=true changes nothing: this run is not on a GPU")
        return []
    return [CudaGraphs()]


def _note_costs(result: Result, task: Task, timer: StepTimer) -> None:
    """Note the size of the model, its curvatures, and what the run took."""
    result.parameters = sum(p.numel() for p in task.parameters())
    result.curvatures = {name: kappa.tolist() for name, kappa in curvatures(task).items()}
    result.ms_per_step = timer.ms_per_step
    result.wall_seconds = timer.wall_seconds
    result.peak_memory_mb = peak_memory_mb()
    result.threads = torch.get_num_threads()
    result.kernels = kernel_kind()
    result.deterministic = torch.are_deterministic_algorithms_enabled()

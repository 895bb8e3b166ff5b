"""Training and evaluation, with one process per device."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig

from curvlab.callbacks import (
    BoundaryFraction,
    CudaGraphs,
    Curves,
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
from curvlab.errors import UsageError, one_sentence
from curvlab.process import default_dtype
from curvlab.results.folder import EARLIER, LAST, RunDirectory
from curvlab.results.result import Result, read_result
from curvlab.run import reporting, signals
from curvlab.run.group import launch, local_devices
from curvlab.run.hardware import (
    peak_memory_mb,
    prepare_determinism,
    prepare_processor,
    reset_peak_memory,
    run_device,
    trainer_accelerator,
)
from curvlab.run.parts import (
    build_data,
    build_logger,
    build_selection,
    build_task,
    build_trainer,
    evaluate_parts,
    prepare_data,
    save_best,
)
from curvlab.run.reporting import say, shown

PICTURED_NODES = 100_000


class CheckpointError(RuntimeError):
    """A checkpoint is intact and of this run, but of other code."""


class EndsBySignal(Callback):
    """Ends training after a signal, once the checkpoint is written."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the signals back from Lightning."""
        signals.again()

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *_: Any, **__: Any) -> None:
        """End without the checkpoint if the signal's time is over."""
        signals.check()

    on_validation_batch_end = on_train_batch_end

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End after the checkpoint, if a process of the group was sent a signal."""
        sent = torch.tensor(int(signals.last_signal() or 0), device=trainer.strategy.root_device)
        if number := int(trainer.strategy.reduce(sent, reduce_op="max")):
            raise signals.Interrupted(number)


def run(config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None) -> None:
    """Train and evaluate, in a process a device; fill in the result and write it."""
    if config.trainer.devices == 1:
        _run_process(0, config, result, folder, checkpoint)
        return
    with default_dtype(config.trainer.precision):
        prepare_data(config)  # once, so that the processes find files and caches
    launch(_run_process, config.trainer.devices, config, result, folder, checkpoint)
    written = read_result(folder.path)
    assert written is not None
    vars(result).update(vars(written))


def _run_process(
    rank: int, config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> None:
    """Train in one of the run's processes; the first one evaluates and writes the result."""
    register_resolvers()
    options = config.trainer
    prepare_processor(options.threads, local_devices(options.devices))
    prepare_determinism(options.accelerator)
    reset_peak_memory()
    parts = config.dataset.source, config.task.get("split") or config.split
    with default_dtype(options.precision), name_keys_in_errors(*parts):
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        _fit(rank == 0, config, result, folder, checkpoint)


def _fit(
    first: bool, config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> None:
    options = config.trainer
    data = build_data(config)
    task = build_task(config, data)
    device = run_device(trainer_accelerator(options.accelerator, options.precision))
    if options.compile:
        compile_parts(task, device)
    if first:  # not before: what cannot be built displaces no other result
        folder.prepare(result, fresh=config.rerun)
    label = f"{config.model.label} on {config.dataset.label}, seed {config.seed}"
    how = "going on from the last checkpoint" if checkpoint else "starting"
    say(f"{label}, {result.manifold}: {how} in {shown(folder.path)}")
    curves, timer = Curves(folder.path / "metrics.csv"), StepTimer()
    best = build_selection(config, data) if task.selects_checkpoint else None
    facts = {name: getattr(result, name) for name in ("config", "schema", "revisions")}
    last = LastCheckpoint(folder.path / LAST, folder.path / EARLIER, facts)
    if options.cuda_graph and device.type != "cuda":
        say("trainer.cuda_graph=true changes nothing: this run is not on a GPU")
    callbacks = [
        curves,
        timer,
        RandomState(alike=task.shares_loss and options.devices > 1),
        BoundaryFraction(),
        FiniteGuard(options.steps_per_epoch),
        RunProgress(curves, label, shown=options.progress and first),
        *([best] if best else []),
        *([CudaGraphs()] if options.cuda_graph and device.type == "cuda" else []),
        last,  # after those whose state it holds
        EndsBySignal(),
    ]
    at = folder.step() if checkpoint else None
    open_logger = build_logger(config.logger, result, folder.path, at) if first else nullcontext()
    with open_logger as logger, reporting.quiet():
        trainer = build_trainer(config, folder.path, callbacks, logger)
        try:
            with signals.wait():
                trainer.fit(task, datamodule=data, ckpt_path=checkpoint, weights_only=True)
        except MisconfigurationException as error:  # of a callback or a key of the user's
            raise UsageError(f"Lightning refuses this: {one_sentence(error)}") from error
        except Exception as error:
            if checkpoint is None or last.started:
                raise
            raise CheckpointError(f"{checkpoint} does not fit: {one_sentence(error)}") from error
        result.best_step = result.steps = trainer.global_step
        if best:
            result.best_step = best.step
            best.restore(task)
        check_weights(task)
        result.metrics = evaluate_parts(trainer, task, data)
        if not first:
            return
        result.score = result.metrics["test"][task.score]
        result.val_score = result.metrics["val"][task.score] if best else None
        if not best and (tail := curves.tail_mean(task.score)) is not None:
            result.metrics["test"][f"{task.score}_tail"] = tail
        result.parameters = sum(p.numel() for p in task.parameters())
        result.curvatures = {name: kappa.tolist() for name, kappa in curvatures(task).items()}
        result.ms_per_step, result.wall_seconds = timer.ms_per_step, timer.wall_seconds
        result.peak_memory_mb = peak_memory_mb()
        result.device = str(trainer.strategy.root_device)
        result.threads = torch.get_num_threads()
        result.deterministic = torch.are_deterministic_algorithms_enabled()
        if hasattr(task, "save"):
            task.save(data.graph, folder.path)
        elif data.num_nodes <= PICTURED_NODES:
            reporting.save_embeddings(task.encoder, data.graph, folder.path)
            reporting.save_filters(task, data.graph, folder.path)
            task.report(data.graph, folder.path)
        with signals.wait():
            save_best(folder.path, task, data, config, result)
            result.status = "finished"
            result.write(folder.path)
        if logger is not None:
            reporting.log_result(result, logger)
        if options.plots:
            reporting.draw(label, folder.path, logger)

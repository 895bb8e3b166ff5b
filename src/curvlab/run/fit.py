"""A training and its evaluation, in as many processes as a run has devices."""

import platform
from contextlib import nullcontext
from pathlib import Path

import lightning
import torch
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig

from curvlab.callbacks import (
    Curves,
    FiniteGuard,
    LastCheckpoint,
    PointShares,
    RandomState,
    RunProgress,
    StepTimer,
    check_weights,
    curvatures,
)
from curvlab.config.building import in_words_of
from curvlab.config.resolvers import register_resolvers
from curvlab.data.loaders.datamodule import GraphDataModule
from curvlab.errors import UsageError
from curvlab.finite import finite_scores
from curvlab.layers.compilation import compile_parts
from curvlab.process import default_dtype
from curvlab.results.folder import EARLIER, RunDirectory
from curvlab.results.result import Result, git_commit, package_versions, read_result
from curvlab.run import reporting, signals
from curvlab.run.checkpoints import by_part, save_best
from curvlab.run.distributed import launch
from curvlab.run.ending import EndsBySignal, one_sentence
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

PICTURED_NODES = 100_000
"""Of larger graphs no embedding is saved and drawn, which would take longer than many a run."""


SHARED_GRAPH = "graph.pt"
"""The file of a run's folder that its processes map the graph from, while it runs."""


class CheckpointError(RuntimeError):
    """A checkpoint is whole and of this run, but of other code."""


def run(config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None) -> None:
    """Train and evaluate, in a process a device; fill in the result and write it."""
    devices = config.trainer.devices
    if devices == 1:
        _run_process(0, config, result, folder, checkpoint)
        return
    options = config.trainer
    trainer_devices(options.accelerator, on_this_machine(devices))
    check_sync_batch_norm(options.sync_batch_norm, options.accelerator)
    shared = folder.path / SHARED_GRAPH
    try:
        digest = _share_graph(config, shared)
        launch(_run_process, devices, config, result, folder, checkpoint, digest)
    finally:
        shared.unlink(missing_ok=True)
    written = read_result(folder.path)
    assert written is not None
    vars(result).update(vars(written))


def _share_graph(config: DictConfig, path: Path) -> str | None:
    """Prepare the graph for all processes of a run, which map it from a file.

    Returns:
        Its digest, if there are other machines, which may not see the file.
    """
    path.unlink(missing_ok=True)
    with default_dtype(config.trainer.precision):
        data = build_data(config)
        data.prepare_data()
        data.share(path)
        devices = config.trainer.devices
        return data.digest() if on_this_machine(devices) < devices else None


def _shared_data(config: DictConfig, path: Path, digest: str | None) -> GraphDataModule:
    """The data of a run, with the graph that its first process has prepared.

    Args:
        config: the run's configuration.
        path: where that process has written it.
        digest: of it, if there are several machines.

    Raises:
        UsageError: this machine does not see the file, and has prepared another graph.
    """
    data = build_data(config)
    if config.trainer.devices > 1 and path.exists():
        data.shared = path
    elif digest is not None and data.digest() != digest:
        raise UsageError(
            f"the graph that {platform.node()} has prepared differs from the first machine's, as "
            "the signs of eigenvectors do between libraries: let all machines see "
            f"paths.output_dir={config.paths.output_dir}, or copy the first one's {data.cache_dir}"
        )
    return data


def _run_process(
    rank: int,
    config: DictConfig,
    result: Result,
    folder: RunDirectory,
    checkpoint: Path | None,
    digest: str | None = None,
) -> None:
    """Train in one of the run's processes; the first one evaluates and writes the result."""
    register_resolvers()
    prepare_processor(config.trainer.threads, on_this_machine(config.trainer.devices))
    options = config.trainer
    result.deterministic = prepare_determinism(options.deterministic, options.accelerator)
    reset_peak_memory()
    parts = config.dataset.source, config.task.get("split") or config.split
    with default_dtype(config.trainer.precision), in_words_of(*parts):
        lightning.seed_everything(config.seed, workers=True, verbose=False)
        data = _shared_data(config, folder.path / SHARED_GRAPH, digest)
        _fit(rank == 0, data, config, result, folder, checkpoint)


def _fit(
    first: bool,
    data: GraphDataModule,
    config: DictConfig,
    result: Result,
    folder: RunDirectory,
    checkpoint: Path | None,
) -> None:
    """Build, train and evaluate what a configuration says."""
    options = config.trainer
    task = build_task(config, data)
    accelerator = trainer_accelerator(options.accelerator, options.precision)
    if options.compile:
        compile_parts(task, accelerator)
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
        RandomState(alike=task.shares_loss and options.devices > 1),
        PointShares(),
        FiniteGuard(folder.path, interval=config.trainer.steps_per_epoch),
        RunProgress(curves, label, shown=config.trainer.progress and first),
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
        result.metrics = finite_scores(
            task, task.score, lambda: by_part(*trainer.test(task, datamodule=data, verbose=False))
        )
        if not first:
            return
        result.score = result.metrics["test"][task.score]
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

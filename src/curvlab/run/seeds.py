"""Several seeds of one run at once: a process a core, which takes the next seed as it gets free.

On a small graph a step is a thousand small operations, which neither a second core nor a GPU makes
faster, and a run waits longer for imports than for its training. So the seeds share one start,
and cores share the seeds. Every seed is a run of its own, with the same random numbers, folder and
result as alone.
"""

import copy
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from io import StringIO
from multiprocessing import active_children
from pathlib import Path

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict

from curvlab.config.resolvers import register_resolvers
from curvlab.config.rules import validate
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.leases import HeldError
from curvlab.results.result import Result, read_result
from curvlab.run import reporting, signals
from curvlab.run.distributed import end_with_parent, start_context
from curvlab.run.hardware import prepare_processor
from curvlab.run.sweep import began, begin
from curvlab.run.train import RunFailedError, changed_words, train_in


def train_seeds(config: DictConfig) -> list[Result]:
    """Run the seeds `seed ... seed + trainer.parallel_seeds - 1`, each as `train` would.

    Args:
        config: the composed configuration.

    Returns:
        The results, in the order of the seeds.

    Raises:
        UsageError: the configuration is wrong.
        RunFailedError: a seed ended without a score (not in a sweep).
        HeldError: other workers are at some of the seeds (in a sweep).
    """
    hydra = HydraConfig.get()
    multirun, changed = hydra.mode == RunMode.MULTIRUN, changed_words(hydra, config)
    validate(config)
    runs = [(seed, folder_of(config, seed)) for seed in seeds_of(config)]
    prepare_processor(config.trainer.threads)
    workers = min(len(runs), torch.get_num_threads())
    reporting.seeds_starting(config.model.label, config.dataset.label, runs, workers)
    with ProcessPoolExecutor(workers, start_context(), initializer=_begin) as pool:
        waiting = {
            pool.submit(
                _run_one, _of_one_seed(config, seed), folder, changed, began(), multirun
            ): folder
            for seed, folder in runs
        }
        results: dict[int, Result] = {}
        held: list[HeldError] = []
        try:
            with signals.passed_on(_at_work):
                for future in as_completed(waiting):
                    result = future.result()
                    if isinstance(result, HeldError):
                        held.append(result)
                    elif result is not None:
                        results[result.seed] = result
                        reporting.finished(result, waiting[future])
        except signals.Interrupted as error:
            for child in active_children():
                child.kill()
            pool.shutdown(cancel_futures=True)
            signals.say(f"ended by {error.signal.name}; the same command goes on with all seeds")
            raise
        except BrokenProcessPool:
            raise RunFailedError(
                "a process of trainer.parallel_seeds was killed, perhaps for want of memory; the "
                "same command goes on with the seeds that have no result"
            ) from None
    if held:
        raise held[0]
    ordered = [results[seed] for seed, _ in runs]
    reporting.seeds_finished(ordered)
    without = [str(r.seed) for r in ordered if r.status != "finished"]
    if without and not multirun:
        raise RunFailedError(f"no score of seed {', '.join(without)}: see above")
    return ordered


def seeds_of(config: DictConfig) -> Sequence[int]:
    """The seeds of a configuration."""
    return range(config.seed, config.seed + config.trainer.parallel_seeds)


def folder_of(config: DictConfig, seed: int) -> Path:
    """The folder of one of the seeds: beside that of the first, which is Hydra's.

    Raises:
        UsageError: Hydra's folder is not named after the seed.
    """
    first = Path(HydraConfig.get().runtime.output_dir)
    if first.name != f"seed{config.seed}":
        raise UsageError(
            f"trainer.parallel_seeds needs a folder a seed, but this run's is {first}: let "
            "hydra.run.dir end in seed${seed}"
        )
    return first.with_name(f"seed{seed}")


def _of_one_seed(config: DictConfig, seed: int) -> DictConfig:
    """The configuration of one of the seeds, run by one thread."""
    one = copy.deepcopy(config)
    with open_dict(one):
        one.seed = seed
        one.trainer.parallel_seeds, one.trainer.threads, one.trainer.progress = 1, 1, False
    return one


def _begin() -> None:
    """Make a process one of the pool's."""
    end_with_parent()
    signals.install(speaks=False)


def _at_work() -> list[int]:
    return [child.pid for child in active_children() if child.pid is not None]


def _run_one(
    config: DictConfig, folder: Path, changed: list[str], began: float | None, multirun: bool
) -> Result | HeldError | None:
    """Run one seed in a process of the pool; an error that ends it is in its result.

    None for one that has not begun, since a signal ends the process; in a sweep an error for one
    that another worker holds.
    """
    if signals.received() is not None:
        return None
    register_resolvers()
    begin(began, "worker")
    with redirect_stdout(StringIO()):
        try:
            place = RunDirectory(folder)
            return train_in(config, place, multirun=True, changed=changed, waits=not multirun)
        except HeldError as error:
            return error
        except signals.Interrupted:
            return read_result(folder)

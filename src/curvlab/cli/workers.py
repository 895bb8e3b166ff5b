"""Workers of a sweep that one command starts: processes here, an array of jobs of SLURM, or Ray.

Each is the same command again; what it runs it finds by the leases of `curvlab.run.sweep`. With Ray
each cell is a task, by Hydra's own launcher.
"""

import logging
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, add, added, find
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError, refuse
from curvlab.program import program
from curvlab.run import signals

GROUP = "hydra/launcher"
LAUNCHERS = ("parallel", "slurm", "ray")
"""Choices of `hydra/launcher` that start workers; `basic`, the default, works itself."""


def split(words: Sequence[str]) -> tuple[str | None, dict[str, Any], list[str]]:
    """The launcher that words choose, its options, and the words without them.

    Raises:
        UsageError: there is no such option, or no such number of workers.
    """
    own = (f"{GROUP}=", "hydra.launcher.")
    ours = [word for word in words if word.lstrip("+").startswith(own)]
    parsed = {word: OverridesParser.create().parse_override(word) for word in ours}
    name = next((o.value() for o in parsed.values() if o.key_or_group == GROUP), None)
    rest = [word for word in words if word not in ours]
    if name not in LAUNCHERS:
        return None, {}, list(words)
    if name == "ray":
        return "ray", {"words": ours}, rest
    options: dict[str, Any] = OmegaConf.to_container(  # type: ignore[assignment]
        OmegaConf.load(find(CONFIGS, f"{GROUP}/{name}.yaml"))
    )
    for override in (parsed[w] for w in ours if parsed[w].key_or_group != GROUP):
        key = override.key_or_group.removeprefix("hydra.launcher.")
        if key not in options and not (name == "slurm" and override.is_add()):
            raise UsageError(f"there is no hydra.launcher.{key}; there is {', '.join(options)}")
        options[key] = override.value()
    number = options["n_jobs"]
    if not (isinstance(number, int) and number > 0) and (number is not None or name == "slurm"):
        raise UsageError(f"hydra.launcher.n_jobs={number} must be a number of workers, 1 or more")
    return str(name), options, rest


def check_launcher(name: object) -> None:
    """Check that there is such a launcher, and say how one is installed that is not there.

    Raises:
        UsageError: it cannot be used here.
    """
    if name not in ("basic", *LAUNCHERS):
        refuse(f"{GROUP}={name}", str(name), ("basic", *LAUNCHERS))
    if name == "slurm" and find_spec("submitit") is None:
        raise UsageError(f"{GROUP}=slurm needs submitit: pip install 'curvlab[cluster]'")
    if name == "ray" and not (find_spec("ray") and find_spec("hydra_plugins")):
        raise UsageError(f"{GROUP}=ray needs Hydra's plugin: pip install hydra-ray-launcher")


def start(launcher: str, options: dict[str, Any], words: Sequence[str]) -> None:
    """Start workers, wait for their end, and let this process sum up.

    Raises:
        UsageError: there is no SLURM here, or it refuses the options.
    """
    from curvlab.cli.train import run
    from curvlab.run.sweep import begin, now_on_disk

    config = compose([word for word in words if word.startswith("paths.")])
    folder = Path(config.paths.output_dir).resolve()
    began = now_on_disk(folder)
    if launcher == "parallel":
        _processes(options["n_jobs"], words, began)
        begin(began, "alone")  # what killed workers have left is run here
    elif launcher == "ray":
        begin(began, "worker")
        sys.argv[1:] = [*words, *options["words"]]
        run()  # Hydra's launcher runs the cells in its own processes
        begin(began, "summary")
        sys.argv[1:] = words
    else:
        _jobs(dict(options), words, began, folder / ".slurm")
        begin(began, "summary")


def work(words: Sequence[str], folders: Sequence[str], began: float, threads: int | None) -> None:
    """Be a worker.

    Args:
        words: the checked words of the command.
        folders: of configurations, beside our own.
        began: when the sweep did.
        threads: this worker's share of the processor; None for all.
    """
    import torch

    from curvlab.cli.train import run
    from curvlab.run.sweep import begin

    for folder in folders:
        add(folder)
    register_resolvers()
    signals.install(speaks=False)
    logging.disable(logging.INFO)  # Hydra lists all cells, a worker runs some
    if threads is not None:
        torch.set_num_threads(threads)
    begin(began, "worker")
    sys.argv[1:] = words
    run()


def _process(*arguments: Any) -> None:
    from curvlab.run.distributed import end_with_parent

    end_with_parent()
    work(*arguments)


def _processes(number: int | None, words: Sequence[str], began: float) -> None:
    """Work in processes of this machine: one a GPU, without GPUs two."""
    import torch

    from curvlab.run.distributed import start_context

    number = number or torch.cuda.device_count() or 2
    threads = max(1, torch.get_num_threads() // number)
    context = start_context()
    workers = [
        context.Process(  # type: ignore[attr-defined]
            target=_process, args=(list(words), list(map(str, added())), began, threads)
        )
        for _ in range(number)
    ]
    try:
        for worker in workers:
            worker.start()
        with signals.passed_on(lambda: [w.pid for w in workers if w.pid and w.is_alive()]):
            for worker in workers:
                worker.join()
    finally:
        for worker in workers:
            if worker.pid:
                worker.kill()
                worker.join()


class Job:
    """A worker as a job of SLURM; one that runs out of its time goes on in another.

    Args:
        words: as of `work`.
        folders: as of `work`.
        began: as of `work`.
    """

    def __init__(self, words: list[str], folders: list[str], began: float) -> None:
        self.words, self.folders, self.began = words, folders, began

    def __call__(self, number: int) -> int:  # noqa: ARG002 - of the array
        """Work; the exit code."""
        try:
            work(self.words, self.folders, self.began, None)
        except SystemExit as end:
            if end.code not in (0, 1, 2, None):  # of submitit, which asks for another try
                raise
            return int(end.code or 0)
        return 0

    def checkpoint(self, number: int) -> Any:
        """What submitit starts anew when the time is over: the same."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, number)


def _jobs(options: dict[str, Any], words: Sequence[str], began: float, folder: Path) -> None:
    """Work in an array of jobs, and wait for it; a job that dies costs no other anything."""
    import submitit

    number, cluster = options.pop("n_jobs"), options.pop("cluster")
    times = options.pop("max_num_timeout")
    general = ("timeout_min", "cpus_per_task", "gpus_per_node", "mem_gb", "nodes", "name")
    given = {k if k in general else f"{cluster}_{k}": v for k, v in options.items()}
    try:
        executor = submitit.AutoExecutor(
            folder / "%j", cluster=cluster, **{f"{cluster}_max_num_timeout": times}
        )
        executor.update_parameters(**{k: v for k, v in given.items() if v is not None})
    except (RuntimeError, ValueError, TypeError, NameError) as error:
        raise UsageError(f"hydra/launcher=slurm: {' '.join(str(error).split())}") from None
    job = Job(list(words), list(map(str, added())), began)
    jobs = executor.map_array(job, range(number))
    print(f"{number} workers on {cluster}: {', '.join(j.job_id for j in jobs)}, logs in {folder}")
    for each in jobs:
        each.wait()
        if each.exception() is not None:
            first = str(each.exception()).strip().splitlines()[-1]
            print(f"{program('train')}: job {each.job_id} died: {first}", file=sys.stderr)

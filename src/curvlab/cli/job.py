"""A run as a job of Hydra's: its folder, its log, and its errors in sentences."""

import sys
from collections.abc import Callable
from multiprocessing import current_process
from typing import Any

from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import run_job
from hydra.types import HydraContext
from omegaconf import DictConfig

from curvlab.cli.overrides import complain
from curvlab.config.compose import JOB
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.run import signals
from curvlab.run.command import Command, spare_read_only
from curvlab.run.group import end_with_parent


def call_as_job(work: Callable[[Command], Any], command: Command, logs: bool) -> Any:
    """Call `work` with a command as a job of Hydra's."""
    assert command.full is not None
    spare_read_only(command.full, command.folder(multirun=False))
    with initialize_config_dir(str(CONFIGS), JOB, version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        context = HydraContext(loader, Callbacks(command.full))
        job = run_job(
            lambda _: work(command),
            command.full,
            "hydra.run.dir",
            None,
            context,
            configure_logging=logs,
        )
    return job.return_value


def run(config: DictConfig) -> float | None:
    """Run one configuration, as a job of Hydra's; return the metric that a search maximises."""
    return run_command(Command.from_hydra(config))


def run_command(command: Command) -> float | None:
    """Train, search or study; return the metric that a search maximises."""
    launched = current_process().name != "MainProcess"
    if launched:
        from curvlab.run.sweep import is_over

        signals.install(speaks=False)
        end_with_parent()
        if signals.last_signal() or is_over():
            return None
    from curvlab.run.endings import RunFailedError
    from curvlab.run.train import train

    try:
        if "search" in command.config:
            from curvlab.search.run import search

            return search(command).objective
        if "study" in command.config:
            from curvlab.study.run import study

            return study(command).objective
        return train(command).objective
    except UsageError as error:
        complain(str(error))
    except RunFailedError as error:
        print(f"curvlab train: {error}", file=sys.stderr)
        sys.exit(1)
    except signals.Interrupted:
        if not launched:
            raise
        return None

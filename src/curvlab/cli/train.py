"""Train a model in a curved space: `curvlab train model=fpst dataset=web_edu`, or `--help`."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.forecast import Forecast, forecast_of_run
from curvlab.cli.job import call_as_job, run, run_command
from curvlab.cli.overrides import (
    INFORMATION,
    MULTIRUN,
    cells_of,
    check_flags,
    check_overrides,
    check_sweep,
    complain,
    keep_folder,
    mark_cell_keys,
    parse,
    read_overrides,
    show_configurations,
    show_help,
)
from curvlab.config.cache import user_cache
from curvlab.config.compose import JOB
from curvlab.config.folder import CONFIGS
from curvlab.config.resolvers import register_resolvers
from curvlab.config.trust import trust
from curvlab.errors import (
    UsageError,
    configuration_message,
    import_message,
    system_message,
    system_remedy,
)
from curvlab.program import import_command, print_if_slow
from curvlab.run import signals
from curvlab.run.command import complete
from curvlab.run.group import end_group_at_exit, follow, group
from curvlab.run.messages import read_run

DRY_RUN = "--dry-run"  # the flag with which a command prints its forecast and stops


def main(arguments: Sequence[str]) -> int:
    """Check the overrides and run what they ask for; return the exit code."""
    rank, size = group()
    signals.install(speaks=rank == 0)
    register_resolvers()
    if rank > 0:
        _trust_overrides(arguments)
        follow(rank, read_run, _take_part)
        return 0
    arguments = list(arguments) or ["--help"]
    if size > 1:
        end_group_at_exit()
        devices = f"trainer.devices={size}"  # part of the result's identity
        conflicting = [a for a in arguments if a.startswith("trainer.devices=") and a != devices]
        if conflicting:
            complain(
                f"{conflicting[-1]}, but {size} processes were started: omit it, or start as many"
            )
        arguments += [] if devices in arguments else [devices]
    with _refuse_in_sentences():
        arguments = read_overrides(keep_folder(arguments))
        if show_help(arguments):
            return 0
        if INFORMATION.intersection(arguments):
            return _by_hydra(arguments)
        return _run(arguments)


def _trust_overrides(arguments: Sequence[str]) -> None:
    """Trust the classes and files that this process's own command names."""
    with suppress(UsageError, HydraException):  # the first process refuses the command
        overrides = [word for word in read_overrides(arguments) if not word.startswith("-")]
        for word in {word for cell in cells_of(overrides) for word in cell}:
            override = parse(word)
            trust({override.key_or_group: override.value()})


def _take_part(rank: int, *run: Any) -> Any:
    """Take part in a run that the first process of the group has dispatched."""
    return import_command("curvlab.run.train").run_process(rank, *run)


def _run(arguments: Sequence[str]) -> int:
    """Print the configurations or the forecast, or run; return the exit code."""
    flags = {DRY_RUN, *MULTIRUN}.intersection(arguments)
    overrides = [argument for argument in arguments if argument not in flags]
    check_flags(overrides)
    dry_run = DRY_RUN in flags
    multirun = bool(flags.intersection(MULTIRUN))
    prints = any(override.lstrip("+").lower() == "print_config=true" for override in overrides)
    completed = partial(
        complete,
        say=partial(print, file=sys.stderr if prints else sys.stdout),
        keep=not (prints or dry_run),
        hydra=[override for override in overrides if override.startswith("hydra") and not multirun],
    )
    cache = user_cache() if multirun and not prints else None
    with print_if_slow("reading the options"):
        if cache is not None:
            check_sweep(overrides, cache, completed)
        else:
            first = check_overrides(overrides, multirun, completed)
    if prints:
        show_configurations(overrides, completed)
        return 0
    if dry_run or multirun:
        forecast = Forecast(overrides, completed, multirun, cache)
        print("\n".join(forecast.lines()), flush=True)
    if dry_run:
        return 0
    if multirun:
        return _by_hydra([MULTIRUN[0], *mark_cell_keys(overrides)])
    expected = forecast_of_run(first, first.folder(multirun=False))
    if expected:
        print(expected, flush=True)
    if _imported("curvlab.run.train") is None:
        return 1
    call_as_job(run_command, first, logs=True)
    return 0


def _by_hydra(arguments: Sequence[str]) -> int:
    """Let Hydra run a sweep, or print what its flags ask for."""
    sweep = _imported("curvlab.run.sweep")
    if sweep is None:
        return 1
    sweep.register()
    sys.argv[1:] = sorted(arguments, key=lambda argument: argument not in MULTIRUN)  # Hydra's order
    hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=JOB)(run)()
    return 0


def _imported(name: str) -> Any:
    """Import a module that needs torch; print why it cannot be imported, and return None."""
    try:
        with print_if_slow("loading PyTorch"):
            return import_command(name)
    except Exception as error:  # Hydra would only say that it failed
        print(f"curvlab train: {import_message(error)}", file=sys.stderr)
        return None


@contextmanager
def _refuse_in_sentences() -> Iterator[None]:
    """Print a refusal as one sentence; with HYDRA_FULL_ERROR=1 raise the exception itself."""
    if os.environ.get("HYDRA_FULL_ERROR", "0") != "0":
        yield
        return
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    except UsageError as error:
        complain(str(error))
    except (HydraException, OmegaConfBaseException) as error:  # before OSError, which some are
        complain(configuration_message(error))
    except (OSError, ValueError) as error:  # Hydra's about its flags, logging's about its file
        if str(error).startswith("Only one of --run"):
            complain(str(error))
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        key = "paths.output_dir="
        folders = [argument.removeprefix(key) for argument in sys.argv if argument.startswith(key)]
        place = folders[-1] if folders else "the folder of paths.output_dir"
        message = f"{system_message(cause, place)}; {system_remedy(cause)}"
        print(f"curvlab train: {message}", file=sys.stderr)
        sys.exit(1)
    finally:
        del os.environ["HYDRA_FULL_ERROR"]

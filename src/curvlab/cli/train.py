"""Train a model in a curved space: `curvlab train model=fpst dataset=web_edu`, or `--help`."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import current_process

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from curvlab.cli.aliases import add_task_of_labels, resolve_aliases
from curvlab.cli.forecast import Forecast
from curvlab.cli.overrides import (
    INFORMATION,
    check_command_line,
    complain,
    show_configurations,
    take_folders,
)
from curvlab.config.folder import CONFIGS
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import NO_ROOM, UsageError, import_message, omegaconf_message, system_message
from curvlab.program import expand_home
from curvlab.run import signals
from curvlab.run.group import end_others, end_with_parent, follow, group

DRY_RUN = "--dry-run"  # the flag with which a command prints its forecast and stops


@hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name="train")
def run(config: DictConfig) -> float | None:
    """Run one configuration; return the metric that a search maximises."""
    launched = current_process().name != "MainProcess"
    if launched:
        from curvlab.run.sweep import is_over

        signals.install(speaks=False)
        end_with_parent()
        if signals.last_signal() or is_over():
            return None
    from curvlab.run.train import RunFailedError, train

    try:
        if "search" in config:
            from curvlab.search.run import search

            return search(config).objective
        if "study" in config:
            from curvlab.study.run import study

            return study(config).objective
        return train(config).objective
    except UsageError as error:
        complain(str(error))
    except RunFailedError as error:
        print(f"curvlab train: {error}", file=sys.stderr)
        sys.exit(1)
    except signals.Interrupted:
        if not launched:
            raise
        return None


def main(arguments: Sequence[str]) -> int:
    """Check the overrides and pass them to Hydra by `sys.argv`; return the exit code."""
    rank, size = group()
    signals.install(speaks=rank == 0)
    if rank > 0:
        follow(rank)
        return 0
    register_resolvers()
    words = expand_home(arguments) or ["--help"]
    if size > 1:
        end_others()
        said = f"trainer.devices={size}"  # which the result's identity knows
        others = [w for w in words if w.startswith("trainer.devices=") and w != said]
        if others:
            started = f"{size} processes were started"
            complain(f"{others[-1]}, but {started}: give one number, or drop the word")
        words += [] if said in words else [said]
    with _refuse_in_sentences():
        words = resolve_aliases(take_folders(words))
        only_forecast = DRY_RUN in words
        words = [word for word in words if word != DRY_RUN]
        shown = any(word.lstrip("+").lower() == "print_config=true" for word in words)
        words = add_task_of_labels(words, only_shown=shown)
        sys.argv[1:] = check_command_line(words)
        if shown:
            show_configurations(sys.argv[1:])
            return 0
        if only_forecast or not INFORMATION.intersection(words):
            expected = Forecast(sys.argv[1:])
            if only_forecast or expected.runs > 1 or any(map(expected.seconds, expected.left)):
                print("\n".join(expected.lines()), flush=True)
        if only_forecast:
            return 0
        try:
            sweep = import_module("curvlab.run.sweep")  # Hydra would only say that it failed
        except Exception as error:
            print(f"curvlab train: {import_message(error)}", file=sys.stderr)
            return 1
        sweep.register()
        run()
    return 0


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
    except HydraException as error:  # some are OSErrors too
        complain(str(error).partition("Config search path")[0])
    except OmegaConfBaseException as error:
        complain(omegaconf_message(error))
    except (OSError, ValueError) as error:  # Hydra's about its flags, logging's about its file
        if str(error).startswith("Only one of --run"):
            complain(str(error))
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        folders = [word.partition("=") for word in sys.argv if word.startswith("paths.output_dir=")]
        place = folders[-1][2] if folders else "the folder of paths.output_dir"
        print(f"curvlab train: {system_message(cause, place)}; {NO_ROOM}", file=sys.stderr)
        sys.exit(1)
    finally:
        del os.environ["HYDRA_FULL_ERROR"]

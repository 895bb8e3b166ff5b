"""Messages between the processes of a group: JSON of plain values, never pickles.

Whoever knows the port of a group's store can write to it, so a message is never executed: the
classes that a run names are checked like those of a stranger's file (`curvlab.config.trust`), and
an error is sent as its name and its text.
"""

import builtins
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from inspect import isclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.config.trust import check
from curvlab.errors import CheckpointError, DivergedError, ProcessError, UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.result import Result

Run = tuple[DictConfig, Result, RunDirectory, Path | None]
"""A run's configuration, its result so far, its folder, and the checkpoint that it resumes from."""

SOURCE = "a message in the store of this run's processes"

KINDS: Mapping[str, type[Exception]] = {
    **{kind.__name__: kind for kind in (CheckpointError, DivergedError, ProcessError, UsageError)},
    "OutOfMemoryError": MemoryError,  # torch's
}
"""Errors that keep their class, in addition to Python's built-in ones."""


def write_run(
    config: DictConfig, result: Result, folder: RunDirectory, checkpoint: Path | None
) -> str:
    """The message that lets another process take part in a run."""
    run = {
        "config": OmegaConf.to_container(config, resolve=True),
        "result": asdict(result),
        "folder": str(folder.path),
        "checkpoint": None if checkpoint is None else str(checkpoint),
    }
    return json.dumps(run)


def read_run(message: str) -> Run:
    """The run of a message.

    Raises:
        UsageError: the message is not from `write_run`, or names a class that is not known.
    """
    try:
        run = json.loads(message)
        check(run["config"], SOURCE)
        checkpoint = run["checkpoint"]
        return (
            OmegaConf.create(run["config"]),
            Result(**run["result"]),
            RunDirectory(Path(run["folder"])),
            None if checkpoint is None else Path(checkpoint),
        )
    except UsageError:
        raise
    except Exception as error:  # another program may have written anything
        raise UsageError(_not_ours()) from error


def write_error(error: BaseException) -> str:
    """The message that reports an error to another process, with its traceback."""
    message: dict[str, Any] = {
        "kind": type(error).__name__,
        "text": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
    if isinstance(error, OSError):
        filename = error.filename and str(error.filename)
        message["arguments"] = [error.errno, error.strerror, filename]
    return json.dumps(message)


def read_error(message: str) -> Exception:
    """The error of a message; a RuntimeError if its class is neither ours nor Python's."""
    try:
        content = json.loads(message)
        text = str(content["text"])
        error = _error(str(content["kind"]), content.get("arguments") or [text])
        error.add_note(str(content["traceback"]))
    except Exception:
        return ProcessError(_not_ours())
    return error


def _error(name: str, arguments: list[Any]) -> Exception:
    kind = KINDS.get(name) or getattr(builtins, name, None)
    if isclass(kind) and issubclass(kind, Exception):
        with suppress(TypeError):  # a class with further arguments
            return kind(*arguments)
    return RuntimeError(f"{name}: {' '.join(map(str, arguments))}")


def _not_ours() -> str:
    return (
        f"{SOURCE} was not written by curvlab: another program uses its port; start the run again "
        "with another MASTER_PORT"
    )

"""Atomic writes, and a search that tolerates changes. It imports no other module of curvlab."""

import fnmatch
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

DISK_ERRORS = (
    OSError,
    PermissionError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)
"""Errors of a file system, not of the network."""

STALE_SECONDS = 3600.0  # age from which the process of a temporary file counts as dead

_fences: list[tuple[Path, Callable[[], None]]] = []


@contextmanager
def fence(folder: Path, check: Callable[[], None]) -> Iterator[None]:
    """Within the block, call `check` before a file below `folder` is replaced or deleted."""
    entry = folder.absolute(), check
    _fences.append(entry)
    try:
        yield
    finally:
        _fences.remove(entry)


def check_fences(path: Path) -> None:
    """Call the checks of all fenced folders that contain a path."""
    for folder, check in _fences:
        if path.absolute().is_relative_to(folder):
            check()


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Name a file in system errors without a file name, such as a write to a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and type(error) in DISK_ERRORS:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to `target`, which replaces it if the block succeeds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}."
    for stale in target.parent.glob(f"{glob.escape(prefix)}*.part"):
        with suppress(OSError):  # another process may delete the file, too
            age = time.time() - stale.stat().st_mtime
            if age > STALE_SECONDS:
                remove(stale)
    partial = None
    try:
        handle, name = tempfile.mkstemp(".part", prefix, target.parent)
        os.close(handle)
        partial = Path(name)
        yield partial
        with suppress(PermissionError, NotImplementedError):  # file systems without permissions
            partial.chmod(0o644)  # mkstemp's 0600 would hide the file from a group's folder
        handle = os.open(partial, os.O_RDONLY)
        os.fsync(handle)  # without it a power loss may leave an empty file
        os.close(handle)
        check_fences(target)
        partial.replace(target)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError if a write fails
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and type(cause) in DISK_ERRORS:
            start = str(target.parent / prefix)
            name = str(cause.filename or start)
            if name.startswith(start):
                raise OSError(cause.errno, cause.strerror, str(target)) from error
        raise
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def atomic_write(path: Path, text: str) -> None:
    """Write `text` to `path`; readers see the old file or the new one."""
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def remove(path: Path) -> None:
    """Delete a file or a folder if it exists."""
    check_fences(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def find_below(folder: Path, pattern: str) -> list[Path]:
    """Sorted files and folders below a folder whose path ends as a pattern says.

    As `Path.rglob`, but a folder that another process deletes or moves meanwhile is passed over:
    `Path.rglob` raises an error then before Python 3.13. Links to folders are not followed.
    """
    found = []
    name = PurePath(pattern).name
    for parent, folders, files in os.walk(folder):
        for match in fnmatch.filter([*folders, *files], name):
            path = Path(parent, match)
            if path.relative_to(folder).match(pattern):
                found.append(path)
    return sorted(found)

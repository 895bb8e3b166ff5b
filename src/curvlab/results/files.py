"""Files that are either whole or not there, and files that one process holds."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def arriving(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target that becomes the target if the block succeeds.

    Args:
        target: the file; its folder is made if it is not there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)  # mkstemp's 0600 would hide the file from a group's shared folder
        _flush(partial)  # else a power loss may leave the name and no content
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def atomic_write(path: Path, text: str) -> None:
    """Write `text` to `path`, so that no reader sees half of it."""
    with arriving(path) as partial:
        partial.write_text(text, encoding="utf-8")


def remove(path: Path) -> None:
    """Delete a file, or a folder in its place; nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def held(path: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a file or folder against other processes within the block.

    Args:
        path: what is held; it must be there.
        wait: called before waiting for the process that holds it, which ends with it.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

"""Files that are either whole or not there."""

import errno
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OF_DISK = (
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EISDIR, errno.ENAMETOOLONG,
    errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS,
)  # fmt: skip
"""What a file system refuses a write with."""

RANDOM_LETTERS = 8
"""Of the name of a temporary file, by `tempfile`."""


@contextmanager
def arriving(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target that becomes the target if the block succeeds.

    Args:
        target: the file; its folder is made if it is not there.

    Raises:
        OSError: it cannot be written; the error names it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _own_file(target) as partial:
        try:
            yield partial
            partial.chmod(0o644)  # mkstemp's 0600 would hide the file from a group's folder
            flush(partial)  # else a power loss may leave the name and no content
            partial.replace(target)
        except (OSError, RuntimeError) as error:  # torch's, when the system refuses it a write
            cause = error if isinstance(error, OSError) else error.__context__
            if not isinstance(cause, OSError) or cause.errno not in OF_DISK:  # of the network, say
                raise
            if cause.filename in (None, str(partial)):
                raise OSError(cause.errno, cause.strerror, str(target)) from error
            raise
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def _own_file(target: Path) -> Iterator[Path]:
    """An empty temporary file beside the target; those of processes that were killed are deleted.

    Each is locked while its process lives, so that nobody takes it for such a one.
    """
    prefix = f".{target.name}."
    for left in target.parent.glob(f"{glob.escape(prefix)}{'?' * RANDOM_LETTERS}"):
        collect(left)
    while True:
        try:
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=prefix)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from error
        try:
            hold(handle)
            if Path(name).exists():  # else collected before it was locked
                yield Path(name)
                return
        finally:
            os.close(handle)


def hold(handle: int) -> None:
    """Lock what is open for as long as it is, so that nobody collects it.

    Where the file system has no locks nothing can be collected either.
    """
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_SH)


def collect(left: Path) -> None:
    """Delete a file or folder unless a process holds it, which has locked it."""
    with suppress(OSError):  # somebody else collects it too, or may not be disturbed
        handle = os.open(left, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(left)
        finally:
            os.close(handle)


def flush(path: Path) -> None:
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

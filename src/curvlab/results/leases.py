"""Leases: who works on what, on any number of machines that share a folder.

A lease is a file that its holder renews every few seconds (`filelock.SoftFileLease`). Whoever waits
for it watches whether it changes, by its own clock: the clocks of two machines are never compared.
A lease that has not changed for a while is abandoned, and so, at once, is one whose holder was a
process of this machine that has ended.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import psutil
from filelock import LeaseCompromise, SoftFileLease, SoftFileLock, Timeout

SUFFIX = ".lease"
"""What names of leases end in."""

RENEWED = 5.0
"""Seconds between two renewals."""

ABANDONED = 120.0
"""Seconds without a renewal after which a lease is free."""

UNWRITTEN = 15.0
"""Seconds after which an empty lease is free: its process was killed as it made it."""

LOOKS = 1.0
"""Seconds between two looks at a lease that is waited for, at most."""

LOST = 1
"""Exit code of a process whose lease another one has taken."""


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease.

    Attributes:
        host: the name of its machine.
        pid: its number there.
        alive: whether it works; None where that cannot be known yet, of another machine.
    """

    host: str = ""
    pid: int = 0
    alive: bool | None = None

    def __str__(self) -> str:
        if not self.pid:  # it has made the file, and not written it yet
            return "another process"
        return f"process {self.pid} on {self.host}"


class HeldError(Exception):
    """Another process holds a lease.

    Args:
        path: the lease.
        holder: the process.
    """

    def __init__(self, path: Path, holder: Holder) -> None:
        super().__init__(path, holder)
        self.path, self.holder = path, holder

    def __str__(self) -> str:
        return f"{self.path.parent} is held by {self.holder}"


class Lease(SoftFileLease):
    """A lease that this process holds until its release, or the end of a `with` block."""

    def __enter__(self) -> Self:
        return self  # it is held already


_waiting: dict[Path, Lease] = {}
"""Leases that this process would like to have; each remembers when the file has last changed."""

_seen: dict[Path, tuple[tuple[int, int], float, bool]] = {}
"""Time and number of each file that was looked at, since when, and whether it had others before."""


def take(path: Path) -> Lease:
    """Take a lease that nobody holds, or whose holder has abandoned it; the caller releases it.

    A process that was stopped for so long that another one has taken its lease ends: what it wrote
    from there on would meet what the other writes.

    Args:
        path: the file; its folder must be there.

    Raises:
        HeldError: another process holds it, or may do so.
        OSError: the file cannot be written.
    """
    if path not in _waiting:
        _waiting[path] = Lease(
            path,
            lease_duration=ABANDONED,
            heartbeat_interval=RENEWED,
            on_compromise=_end,
            thread_local=False,
        )
    _remove_left(path)
    try:
        _waiting[path].acquire(blocking=False)
    except Timeout:
        raise HeldError(path, look(path) or Holder()) from None
    except OSError as error:
        if (holder := look(path)) is not None:  # of another user
            raise HeldError(path, holder) from None
        raise OSError(error.errno, error.strerror, str(path)) from None
    return _waiting.pop(path)


@contextmanager
def held(path: Path, wait: Callable[[Holder], None]) -> Iterator[None]:
    """Hold a lease within the block.

    Args:
        path: the file; its folder must be there.
        wait: called before waiting for the process that holds it.
    """
    pause, lease = LOOKS / 64, None
    while lease is None:
        try:
            lease = take(path)
        except HeldError as error:
            if pause == LOOKS / 64:
                wait(error.holder)
            time.sleep(pause)
            pause = min(2 * pause, LOOKS)
    with lease:
        yield


def look(path: Path) -> Holder | None:
    """The process that holds a lease; None for nobody."""
    owner = SoftFileLease(path).owner
    try:
        file = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        _seen.pop(path, None)
        return None
    mark, now = (file.st_mtime_ns, file.st_ino), time.monotonic()
    before, since, changed = _seen.get(path, (mark, now, False))
    if mark != before:
        since, changed = now, True
    _seen[path] = mark, since, changed
    if now - since > (ABANDONED if owner else UNWRITTEN):
        return None
    if owner is None:
        return Holder()
    if owner.hostname != _machine():
        return Holder(owner.hostname.partition("?")[0], owner.pid, changed or None)
    try:
        process = psutil.Process(owner.pid)
        # One that was started long after the last renewal has its number, and is not it.
        runs = process.create_time() - file.st_mtime < ABANDONED
        runs = runs and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        runs = False
    return Holder(owner.hostname.partition("?")[0], owner.pid, True) if runs else None


def holders(folder: Path) -> list[Holder]:
    """The other processes that hold leases in a folder."""
    found = (look(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return [holder for holder in found if holder is not None]


def _remove_left(path: Path) -> None:
    """Delete a lease that nobody holds and that filelock would leave alone.

    It is of a zombie, of another user, or empty. Of several processes the one with the guard looks
    again and deletes it.
    """
    left = path.exists() and look(path) is None
    owner = SoftFileLease(path).owner
    if left and (owner is None or psutil.pid_exists(owner.pid) or not os.access(path, os.W_OK)):
        with suppress(Timeout, OSError), SoftFileLock(f"{path}.guard", blocking=False):
            if look(path) is None:
                SoftFileLease(path).force_break()


@cache
def _machine() -> str:
    """What filelock calls this machine, and in a container its space of process numbers."""
    with TemporaryDirectory() as folder, SoftFileLease(Path(folder, "lease")) as lease:
        owner = lease.owner
    assert owner is not None
    return owner.hostname


def _end(lost: LeaseCompromise) -> None:
    print(
        f"curvlab: {lost.lock_file} is gone or another process's, as after a long stop of this "
        "one, which ends here",
        file=sys.stderr,
        flush=True,
    )
    os._exit(LOST)

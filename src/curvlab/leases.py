"""Leases: which process works on which folder, on machines that share a disk.

The clock of the disk measures the age of a lease, so two clocks are never compared.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread

import psutil
from filelock import AcquireReturnProxy, LeaseCompromise, SoftFileLease, SoftFileLock, Timeout

from curvlab.files import fence

SUFFIX = ".lease"  # suffix of the names of leases
RENEWAL = 5.0  # seconds between renewals
SILENCE = 20.0  # seconds without renewal until a holder may be dead
EXPIRY = 120.0  # seconds without renewal until a lease expires
EMPTY_EXPIRY = 15.0  # seconds until a lease without content expires

WATCH_INTERVAL = 1.0  # seconds between checks that a lease is still held
# A lease counts as lost after several checks, since other processes move it aside to read it.
LOSS_CHECKS = 4
LOSS_INTERVAL = 0.05  # seconds between these checks

LOSS_EXIT_CODE = 1  # exit code of a process whose lease another process acquired


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease."""

    host: str = ""  # name of the machine; empty while the lease is being written
    pid: int = 0
    alive: bool = False  # known to be alive; a silent remote process counts as dead

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.host else "another process"


@dataclass(eq=False)
class HeldError(Exception):
    """Another process, `holder`, holds the lease `path`."""

    path: Path
    holder: Holder

    def __str__(self) -> str:
        return f"{self.path.parent} is held by {self.holder}"


def acquire(
    path: Path, wait: Callable[[Holder], None] | None = None
) -> AcquireReturnProxy[SoftFileLease]:
    """Acquire a lease until the end of a `with` block; a process that loses its lease ends.

    Without `wait`, a lease that another process holds raises `HeldError`. With it, `wait` is called
    once with the holder, and this process waits for the lease.
    """
    pause = 0.0
    while True:
        try:
            return _try_acquire(path)
        except HeldError as error:
            if wait is None:
                raise
            if not pause:
                wait(error.holder)
            pause = min(2 * pause + 0.01, 1.0)
            time.sleep(pause)


def _try_acquire(path: Path) -> AcquireReturnProxy[SoftFileLease]:
    lease = SoftFileLease(
        path,
        lease_duration=EXPIRY,
        heartbeat_interval=RENEWAL,
        on_compromise=_end_process,
        thread_local=False,
    )
    if path.exists() and find_holder(path) is None:
        # One of several processes gets the guard and deletes the lease if it is still free.
        with suppress(Timeout, OSError), SoftFileLock(f"{path}.guard", blocking=False):
            if find_holder(path) is None:
                lease.force_break()
    try:
        proxy = lease.acquire(blocking=False)
        identity = _identity(path)
        if identity:
            Thread(target=_watch, args=(lease, path, identity), daemon=True).start()
        return proxy
    except Timeout:
        raise HeldError(path, find_holder(path) or Holder()) from None
    except OSError as error:
        holder = find_holder(path)
        if holder is not None:  # a process of another user
            raise HeldError(path, holder) from None
        raise OSError(error.errno, error.strerror, str(path)) from None


def find_holder(path: Path) -> Holder | None:
    """The process that holds a lease; None if the lease is free."""
    try:
        renewal = path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    owner = SoftFileLease(path).owner
    age = now_on_disk(path.parent) - renewal
    if age < -RENEWAL:  # the clock was set back: the age counts from now
        age = -age
        with suppress(OSError):
            os.utime(path)
            age = 0.0
    expiry = EXPIRY if owner else EMPTY_EXPIRY
    if age > expiry:
        return None
    if owner is None:
        return Holder()
    host = owner.hostname.partition("?")[0]
    alive = age < SILENCE
    if owner.hostname == _machine():
        try:
            process = psutil.Process(owner.pid)
            # A process that started long after the last renewal has reused the number.
            alive = process.create_time() - renewal < EXPIRY
            alive = alive and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            alive = False
        if not alive:
            return None
    return Holder(host, owner.pid, alive)


@contextmanager
def fenced(path: Path) -> Iterator[None]:
    """Within the block, replace files in a lease's folder only while the lease is the same.

    A process that was suspended for longer than its lease ends before it replaces files of the
    next holder. The lease may belong to the parent process.
    """
    identity = _identity(path)

    def check() -> None:
        if identity is not None and _is_lost(path, identity):
            _end_process(path)

    with fence(path.parent, check):
        yield


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a lease's file, unique while its holder keeps the file open."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_lost(path: Path, identity: tuple[int, int]) -> bool:
    for _ in range(LOSS_CHECKS):
        if _identity(path) == identity:
            return False
        time.sleep(LOSS_INTERVAL)
    return True


def _watch(lease: SoftFileLease, path: Path, identity: tuple[int, int]) -> None:
    """End this process when it has lost a lease; filelock notices later, after two renewals."""
    while lease.is_locked:
        if _is_lost(path, identity) and lease.is_locked:
            _end_process(path)
        time.sleep(WATCH_INTERVAL)


def now_on_disk(folder: Path) -> float:
    """The time by the clock of a folder's disk; of this machine if the folder is read-only."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


@cache
def _machine() -> str:
    """The name that filelock gives this machine, and in a container its process namespace."""
    with tempfile.TemporaryDirectory() as folder, SoftFileLease(Path(folder, "lease")) as lease:
        assert lease.owner is not None
        return lease.owner.hostname


def _end_process(lease: LeaseCompromise | Path) -> None:
    path = lease if isinstance(lease, Path) else lease.lock_file
    reason = "was deleted or acquired by another process, as after a long stop: this process ends"
    print(f"curvlab: {path} {reason}", file=sys.stderr, flush=True)
    os._exit(LOSS_EXIT_CODE)

"""Leases: who works on what, on any number of machines that share a folder.

A lease is a file that one process alone can make (by a link; by `O_EXCL` on NFS). Its holder
renews it every few seconds. Whoever waits for it watches whether it changes, by its own clock: the
clocks of two machines are never compared. A lease that has not changed for a while is abandoned,
and so, at once, is one whose holder was a process of this machine that has ended.
"""

import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import psutil

SUFFIX = ".lease"
"""What names of leases end in."""

RENEWED = 5.0
"""Seconds between two renewals."""

ABANDONED = 120.0
"""Seconds without a renewal after which a lease of another machine is free."""

UNWRITTEN = 15.0
"""Seconds after which an empty lease is free: its process was killed as it made it, on NFS."""

LOOKS = 1.0
"""Seconds between two looks at a lease that is waited for, at most."""

LOST = 1
"""Exit code of a process whose lease another one has taken."""

_CLOCK = 2.0  # seconds by which the start of a process may be read differently


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease.

    Attributes:
        host: the name of its machine.
        pid: its number there.
        since: when it took the lease, by its own clock; for people to read.
        line: the lease's first line, which no other lease has.
        alive: whether it works; None where that cannot be known yet, of another machine.
    """

    host: str
    pid: int
    since: str
    line: bytes
    alive: bool | None

    def __str__(self) -> str:
        if not self.pid:  # it has made the file, and not written it yet
            return "another process"
        return f"process {self.pid} on {self.host} since {self.since.replace('T', ' ')[:16]}"


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


class Lease:
    """A lease that this process holds and renews until its release.

    A process that was stopped for so long that another one has taken its lease ends: what it wrote
    from there on would meet what the other writes.

    Args:
        path: the file, which this process has just made.
        line: what is written in it.
    """

    def __init__(self, path: Path, line: bytes) -> None:
        self.path, self.line = path, line
        self._ended, self._lock = Event(), Lock()
        Thread(target=self._renew, name=f"lease of {path.parent.name}", daemon=True).start()

    def _renew(self) -> None:
        number = 0
        while not self._ended.wait(RENEWED):
            number += 1
            with self._lock:
                if not self._ended.is_set() and not self._write(number):
                    print(
                        f"curvlab: {self.path} is gone or another process's, as after a long "
                        "stop of this one, which ends here",
                        file=sys.stderr,
                        flush=True,
                    )
                    os._exit(LOST)

    def _write(self, number: int) -> bool:
        """Change the file, if it still is this lease; whether it is."""
        try:
            with self.path.open("rb+") as file:  # opened anew: NFS asks its server then
                if file.readline() != self.line:
                    return False
                file.seek(len(self.line))
                file.write(b"%012d\n" % number)
        except FileNotFoundError:
            return False
        except OSError:  # of a server that does not answer: the next one may
            return True
        return True

    def release(self) -> None:
        """Give it back."""
        with self._lock:
            self._ended.set()
        with suppress(OSError):  # of a folder that is gone
            try:
                _remove(self.path, self.line)
            except OSError:  # a full disk has no room for the second file
                if self.path.read_bytes().startswith(self.line):
                    self.path.unlink()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take(path: Path) -> Lease:
    """Take a lease that nobody holds, or whose holder has abandoned it.

    Args:
        path: the file; its folder must be there.

    Raises:
        HeldError: another process holds it, or may do so.
        OSError: the file cannot be written.
    """
    while True:
        holder = _holder(path)
        if holder is not None and (holder.alive is not False or not _remove(path, holder.line)):
            raise HeldError(path, holder)
        line = _own_line()
        if _made(path, line):
            return Lease(path, line)


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
    holder = _holder(path)
    return None if holder is None or holder.alive is False else holder


def holders(folder: Path) -> list[Holder]:
    """The other processes that hold leases in a folder."""
    found = (look(path) for path in sorted(folder.glob(f"*{SUFFIX}")))
    return [holder for holder in found if holder is not None]


_seen: dict[Path, tuple[bytes, float, bool]] = {}
"""Leases with their content, when this process first saw it, and whether it has seen another."""


def _holder(path: Path) -> Holder | None:
    """The process that a lease names, and what is known of it."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        _seen.pop(path, None)
        return None
    now = time.monotonic()
    before, since, changed = _seen.get(path, (content, now, False))
    if content != before:
        since, changed = now, True
    _seen[path] = (content, since, changed)
    line = content.partition(b"\n")[0] + b"\n"
    facts = _facts(line)
    alive: bool | None = True if changed else None
    if facts and facts["machine"] == _machine():
        alive = _runs(facts["pid"], facts["started"])
    elif now - since > (ABANDONED if facts else UNWRITTEN):
        alive = False
    return Holder(
        str(facts.get("host", "")), facts.get("pid", 0), str(facts.get("since", "")), line, alive
    )


def _facts(line: bytes) -> dict[str, Any]:
    """What a lease says; nothing where it is not written yet."""
    try:
        facts = json.loads(line)
        return {key: facts[key] for key in ("host", "pid", "since", "machine", "started")}
    except (ValueError, KeyError, TypeError):
        return {}


def _own_line() -> bytes:
    """The first line of a lease of this process."""
    facts = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": _machine(),
        "started": psutil.Process().create_time(),
        "token": uuid.uuid4().hex,
    }
    return json.dumps(facts).encode() + b"\n"


@cache
def _machine() -> str:
    """Where a process number means one process: this machine since its start, or this container."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _runs(pid: int, started: float) -> bool:
    """Whether a process of this machine has not ended."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(process.create_time() - started) < _CLOCK
    except psutil.NoSuchProcess:
        return False


def _made(path: Path, line: bytes) -> bool:
    """Make a file that is not there; whether this process has."""
    try:
        return _linked(path, line)
    except (AttributeError, OSError):  # Linux has files without a name, NFS has none
        pass
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(handle, line)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(handle)
    return True


def _linked(path: Path, line: bytes) -> bool:
    """Make it with its content: written without a name, so that a kill leaves nothing."""
    handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
    try:
        os.write(handle, line)
        # With a folder's handle, which an absolute path needs not, the link of /proc is followed.
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle)
    except FileExistsError:
        return False
    finally:
        os.close(handle)
    return True


def _remove(path: Path, line: bytes) -> bool:
    """Delete a lease if it still is the one with this line; whether it is gone.

    Of several processes only the one that makes a second file does so. Without it one process could
    delete what another has made since.
    """
    token = json.loads(line)["token"] if _facts(line) else "empty"
    guard = path.with_name(f"{path.name}.{token}")
    if not _made(guard, _own_line()):
        other = _holder(guard)
        if other is not None and other.alive is False:  # killed within this function
            guard.unlink(missing_ok=True)
        return False
    try:
        content = path.read_bytes()
        if content.partition(b"\n")[0] + b"\n" != line:
            return False
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return True
    finally:
        guard.unlink(missing_ok=True)
        _seen.pop(path, None)
    return True

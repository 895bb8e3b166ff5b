"""Work in a process of its own, with a limit of time: what crashes or hangs costs itself alone."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Outcome:
    """How work in a process of its own ended.

    Attributes:
        status: `done`, `failed`, `too long`, or `no time`, where it was not begun.
        seconds: that it took.
        value: what it returned; None unless it is done.
        output: what it and the processes it started have printed.
    """

    status: str
    seconds: float = 0.0
    value: Any = None
    output: str = ""


def apart(work: Callable[[], Any], seconds: float) -> Outcome:
    """Call a function in a fork of this process; all that it started ends with it.

    A fork has what is imported here. Here no CUDA may have started, which a fork could not use.

    Args:
        work: returns what JSON can hold.
        seconds: after which it is killed; none are left at 0 or below.
    """
    if seconds <= 0:
        return Outcome("no time")
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        printed, returned = Path(folder, "output"), Path(folder, "value.json")
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _work(work, printed, returned)
        code = _ended(child, began + seconds)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        output = printed.read_text(errors="replace") if printed.is_file() else ""
        taken = time.monotonic() - began
        if code is None:
            return Outcome("too long", taken, None, output)
        if code or not returned.is_file():
            killed = f"killed by signal {-code}\n" if code < 0 else ""
            return Outcome("failed", taken, None, output + killed)
        return Outcome("done", taken, json.loads(returned.read_text()), output)


def _ended(child: int, deadline: float) -> int | None:
    """The exit code of a process, or None if it had to be killed at the deadline."""
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_SECONDS)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _work(work: Callable[[], Any], printed: Path, returned: Path) -> None:
    """Be the process: work, write what it returns, and leave."""
    code = 1
    try:
        os.setsid()
        handle = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        # Not the parent's streams, which a caller may have put something else in the place of.
        sys.stdout = sys.stderr = os.fdopen(handle, "w", buffering=1, errors="replace")
        returned.write_text(json.dumps(work()))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)

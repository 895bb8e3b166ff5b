"""Signals that end a run from outside: with a checkpoint, a sentence, and a code that says so.

SIGTERM and SIGUSR1 let a training go on to its next checkpoint, for a while; SIGINT ends at once.
Nothing here imports torch, so that a command can be ended while it still imports.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from signal import Signals
from types import FrameType
from typing import Any

from curvlab.program import program

GRACE_SECONDS = {Signals.SIGTERM: 20.0, Signals.SIGUSR1: 60.0, Signals.SIGINT: 0.0}
"""How long a training may go on to reach its next checkpoint; SLURM kills 30 s after SIGTERM."""

REQUEUE = 75
"""Exit code after SIGUSR1 in a job of SLURM, for `scontrol requeue`: EX_TEMPFAIL, try again."""

EXIT_CODES = {Signals.SIGTERM: 143, Signals.SIGUSR1: 143, Signals.SIGINT: 130}


class Interrupted(SystemExit):
    """A signal ends this process; no `except Exception` stops it, and its code is the exit code."""

    def __init__(self, number: int) -> None:
        self.signal = Signals(number)
        requeued = self.signal is Signals.SIGUSR1 and "SLURM_JOB_ID" in os.environ
        super().__init__(REQUEUE if requeued else EXIT_CODES[self.signal])

    def __reduce__(self) -> tuple[type["Interrupted"], tuple[int]]:
        return Interrupted, (int(self.signal),)


@dataclass
class _State:
    """What this process knows of signals."""

    received: Signals | None = None
    since: float = 0.0
    held_back: int = 0
    speaks: bool = False
    sentence: str = ""
    children: Callable[[], Sequence[int]] | None = None
    handlers: dict[Signals, Any] = field(default_factory=dict)


_state = _State()


def install(speaks: bool = True) -> None:
    """Handle the signals in this process from here on, unless somebody else does already.

    Args:
        speaks: whether it says at its end that a signal has ended it; the others of its group
            leave SIGINT, which a terminal sends to all of them, to the one that speaks.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in GRACE_SECONDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            ours = speaks or number is not Signals.SIGINT
            _state.handlers[number] = _on_signal if ours else signal.SIG_IGN
    again()
    if speaks and not _state.speaks:
        _state.speaks = True
        atexit.register(_tell)


def again() -> None:
    """Take the signals back from a library that has put its own handlers before ours."""
    for number, handler in _state.handlers.items():
        signal.signal(number, handler)


def received() -> Signals | None:
    """The signal that this process is to end by."""
    return _state.received


def say(sentence: str) -> None:
    """Set what is said at the end of this process, in place of the signal's name alone."""
    _state.sentence = sentence


def check(at_checkpoint: bool = False) -> None:
    """End here if a signal asks for it and its time is over, or nothing is lost by it.

    Raises:
        Interrupted: it does.
    """
    if _state.received is not None and (at_checkpoint or _is_over()):
        raise Interrupted(_state.received)


def hold() -> None:
    """Let signals wait for `check` from here on."""
    _state.held_back += 1


def release() -> None:
    """Let them end the process at once again."""
    _state.held_back -= 1


@contextmanager
def held_back() -> Iterator[None]:
    """Let a block end before a signal ends the process."""
    hold()
    try:
        yield
    finally:
        release()
    if not _state.held_back:
        check(at_checkpoint=True)


@contextmanager
def passed_on(children: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Within the block, pass signals on to processes of the run and wait for their end.

    SIGINT is not: this process ends at once, and with it the others.

    Args:
        children: the numbers of the processes that are alive.
    """
    _state.children = children
    try:
        yield
    finally:
        _state.children = None
    check(at_checkpoint=True)


def _is_over() -> bool:
    assert _state.received is not None
    return time.monotonic() - _state.since >= GRACE_SECONDS[_state.received]


def _on_signal(number: int, _: FrameType | None) -> None:
    first = _state.received is None
    _state.received = Signals(number)
    if first:
        _state.since = time.monotonic()
    is_repeated = not first and _state.received is Signals.SIGINT
    if _state.children is not None and _state.received is not Signals.SIGINT:
        for child in _state.children():
            os.kill(child, number)
    elif not _state.held_back or is_repeated:
        raise Interrupted(number)


def _tell() -> None:
    """Say at the end which signal it was."""
    if _state.received is not None:
        what = _state.sentence or f"ended by {_state.received.name}"
        print(f"{program('train')}: {what}.", file=sys.stderr)

"""Ends of runs by signals: after a checkpoint, with one sentence and an exit code."""

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

GRACE_SECONDS = {
    Signals.SIGTERM: 20.0,
    Signals.SIGHUP: 20.0,  # of a closed terminal; ignored under nohup
    Signals.SIGQUIT: 20.0,
    Signals.SIGUSR1: 60.0,
    Signals.SIGINT: 0.0,
}
"""Time that training has to reach its next checkpoint; SLURM kills 30 s after SIGTERM."""

REQUEUE = 75
"""Exit code after SIGUSR1 in a job of SLURM, for `scontrol requeue`: EX_TEMPFAIL, try again."""

EXIT_CODES = {
    Signals.SIGTERM: 143,
    Signals.SIGHUP: 129,
    Signals.SIGQUIT: 131,
    Signals.SIGUSR1: 143,
    Signals.SIGINT: 130,
}


FINALISERS = ("__del__", "__exit__", "_removeHandlerRef")
FINALISER_FILES = ("weakref.py", "_weakrefset.py", "atexit.py")
"""Functions, and files of functions, that an exception would leave half done."""

RESEND_SECONDS = 0.02
"""Seconds until a signal that arrives in a finaliser is sent again."""

LONGEST_DEFERRAL = 10.0
"""Seconds for which a signal is deferred by finalisers."""


class Interrupted(SystemExit):
    """A signal ends this process with an exit code; `except Exception` does not catch it."""

    def __init__(self, number: int) -> None:
        self.signal = Signals(number)
        requeued = self.signal is Signals.SIGUSR1 and "SLURM_JOB_ID" in os.environ
        super().__init__(REQUEUE if requeued else EXIT_CODES[self.signal])


@dataclass
class _State:
    received: Signals | None = None
    since: float = 0.0
    waits: int = 0
    children: Callable[[], Sequence[int]] | None = None
    sentence: str = ""
    handlers: dict[Signals, Any] = field(default_factory=dict)


_state = _State()


def install(speaks: bool = True) -> None:
    """Install the handlers; only the process of a group that `speaks` handles SIGINT."""
    if _state.handlers or threading.current_thread() is not threading.main_thread():
        return
    for number in GRACE_SECONDS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            ours = speaks or number is not Signals.SIGINT
            _state.handlers[number] = _on_signal if ours else signal.SIG_IGN
    restore()
    if speaks:
        atexit.register(_print_sentence)


def restore() -> None:
    """Reinstall the handlers that a library has replaced."""
    for number, handler in _state.handlers.items():
        signal.signal(number, handler)


def last_signal() -> Signals | None:
    """The signal that this process has received, if any."""
    return _state.received


def say(sentence: str) -> None:
    """Set the sentence that is printed when this process ends."""
    _state.sentence = sentence


def check(at_checkpoint: bool = False) -> None:
    """End the process after a signal if its time is over or nothing would be lost."""
    number = _state.received
    if number and (at_checkpoint or time.monotonic() - _state.since >= GRACE_SECONDS[number]):
        raise Interrupted(number)


@contextmanager
def wait(children: Callable[[], Sequence[int]] | None = None) -> Iterator[None]:
    """Defer signals to `check` within the block and forward them to `children`."""
    _state.waits += 1
    _state.children = children
    try:
        yield
    finally:
        _state.waits -= 1
        _state.children = None
    if not _state.waits:
        check(at_checkpoint=True)


def _on_signal(number: int, frame: FrameType | None) -> None:
    repeated = _state.received is not None
    _state.received = Signals(number)
    if not repeated:
        _state.since = time.monotonic()
    urgent = number == Signals.SIGINT and (repeated or _state.children is not None)
    if not _state.waits or urgent:
        _raise_or_defer(number, frame)
    for child in _state.children() if _state.children else ():
        os.kill(child, number)


def _raise_or_defer(number: int, frame: FrameType | None) -> None:
    """End here, or send the signal again later if a finaliser is running."""
    if not _is_finalising(frame) or time.monotonic() - _state.since > LONGEST_DEFERRAL:
        raise Interrupted(number)
    main = threading.main_thread().ident
    threading.Timer(RESEND_SECONDS, signal.pthread_kill, [main, number]).start()


def _is_finalising(frame: FrameType | None) -> bool:
    """Whether a function that cleans up is running."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in FINALISERS or code.co_filename.endswith(FINALISER_FILES):
            return True
        frame = frame.f_back
    return False


def _print_sentence() -> None:
    if _state.received is not None:
        sentence = _state.sentence or f"ended by {_state.received.name}; the same command resumes"
        print(f"curvlab train: {sentence}.", file=sys.stderr)

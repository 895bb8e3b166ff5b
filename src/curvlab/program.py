"""Helpers of the command line: imports, the home folder, plain text, progress, times."""

import gc
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Part = TypeVar("Part")

PATIENCE = 2.0
"""Seconds without output after which a command names its work."""

PAUSE = 10.0
"""Seconds between two lines of a loop's progress."""

SPIN_COUNT = 1000
"""Rounds for which an idle thread of OpenMP spins before it sleeps."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal or reorder its text, except line breaks."""


def import_command(name: str) -> ModuleType:
    """Import a module of a command, and with it PyTorch, in a way that saves time.

    - The garbage collector is off during the import, and skips the imported objects afterwards.
      It would scan them again and again, which takes a third of a start's CPU time.
    - An idle thread of GNU's OpenMP sleeps after `SPIN_COUNT` rounds. By default it spins for
      milliseconds; where another process shares the cores, a step then takes several times as
      long. `OMP_WAIT_POLICY` and `GOMP_SPINCOUNT` of the environment have priority.
    """
    if name in sys.modules:
        return sys.modules[name]
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def escape_controls(text: str) -> str:
    """Write control characters as Python's `repr` does."""
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def expand_home(arguments: Sequence[str]) -> list[str]:
    """Expand `~/` at the start of values."""
    home = rf"\g<1>{Path.home()}"
    return [re.sub(r"^([^=]+=)?~(?=/|$)", home, argument) for argument in arguments]


@contextmanager
def print_if_slow(work: str) -> Iterator[None]:
    """Print lines to the standard error while a block runs.

    The lines appear after 2, 5, 8 and 11 seconds, and then less and less often.
    """
    end = Event()
    Thread(target=_print_until, args=(end, escape_controls(work)), daemon=True).start()
    try:
        yield
    finally:
        end.set()


def _print_until(end: Event, work: str) -> None:
    seconds = PATIENCE
    pause = PATIENCE
    note = ""
    while not end.wait(pause):
        print(f"{work} ...{note}", file=sys.stderr)
        pause = max(PATIENCE + 1, seconds / 4)
        seconds += pause
        note = f" ({seconds:.0f} s)"


def print_progress(parts: Sequence[Part], work: str) -> Iterator[Part]:
    """Yield parts; print the finished share to the standard error every ten seconds."""
    start = time.monotonic()
    last_line = start
    for count, part in enumerate(parts):
        now = time.monotonic()
        if now - last_line > PAUSE:
            last_line = now
            remaining = (now - start) * (len(parts) - count) / count
            share = count / len(parts)
            print(f"{work}: {share:.0%}, {format_time(remaining)} left", file=sys.stderr)
        yield part


def plain_console(**options: Any) -> "Console":
    """A console without markup, so that a name such as `[/m/0abc]` is printed unchanged.

    The console styles text and escapes control characters (`escape_controls`).
    """
    from rich.console import Console
    from rich.segment import Segment

    def escape_segment(segment: Segment) -> Segment:
        if segment.control:
            return segment
        return segment._replace(text=escape_controls(segment.text))

    class PlainConsole(Console):
        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            return super()._render_buffer(map(escape_segment, buffer))

    return PlainConsole(markup=False, emoji=False, highlight=False, **options)


def format_time(seconds: float) -> str:
    """Format a time with two digits: `40 s`, `42 min`, `7.5 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 36000:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 3600:,.0f} h"

"""Helpers of all verbs: the home folder, plain text, times."""

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Part = TypeVar("Part")

PATIENCE = 2.0
"""Seconds without a line after which a command says what it does."""

PAUSE = 10.0
"""Seconds between lines on the progress of a loop."""

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters with which a name could steer a terminal, or reorder its text; not line breaks."""


def without_controls(text: str) -> str:
    """Write control characters as Python's `repr` does."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def expand_home(words: Sequence[str]) -> list[str]:
    """Expand `~/` at the start of values."""
    return [re.sub(r"^([^=]+=)?~(?=/|$)", rf"\g<1>{Path.home()}", word) for word in words]


@contextmanager
def say_if_slow(what: str) -> Iterator[None]:
    """Print lines to the standard error while a block is at work.

    They are printed after 2, 5, 8 and 11 seconds, and then less and less often.
    """
    ended = Event()
    Thread(target=_say_until, args=(ended, without_controls(what)), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _say_until(ended: Event, what: str) -> None:
    seconds = pause = PATIENCE
    note = ""
    while not ended.wait(pause):
        print(f"{what} ...{note}", file=sys.stderr)
        pause = max(PATIENCE + 1, seconds / 4)
        seconds += pause
        note = f" ({seconds:.0f} s)"


def with_progress(parts: Sequence[Part], what: str) -> Iterator[Part]:
    """Yield parts, and print to the standard error every ten seconds which share is done."""
    said = start = time.monotonic()
    for done, part in enumerate(parts):
        if time.monotonic() - said > PAUSE:
            said = time.monotonic()
            left = (said - start) * (len(parts) - done) / done
            print(f"{what}: {done / len(parts):.0%}, {format_time(left)} left", file=sys.stderr)
        yield part


def plain_console(**options: Any) -> "Console":
    """A console that prints text as it is: a name such as `[/m/0abc]` is not markup.

    It styles text, and writes control characters in it as `without_controls` does.
    """
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            return super()._render_buffer(
                part if part.control else part._replace(text=without_controls(part.text))
                for part in buffer
            )

    return PlainConsole(markup=False, emoji=False, highlight=False, **options)


def format_time(seconds: float) -> str:
    """Format a time with two digits: `40 s`, `42 min`, `7.5 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{seconds / 3600:,.0f} h"

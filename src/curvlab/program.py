"""Helpers of all verbs: the home folder, plain text, times."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def expand_home(words: Sequence[str]) -> list[str]:
    """Expand `~/` at the start of values."""
    return [re.sub(r"^([^=]+=)?~(?=/|$)", rf"\g<1>{Path.home()}", word) for word in words]


def plain_console(**options: Any) -> "Console":
    """A console that prints text as it is: a name such as `[/m/0abc]` is not markup."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, **options)


def format_time(seconds: float) -> str:
    """Format a time with two digits: `40 s`, `42 min`, `7.5 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{seconds / 3600:,.0f} h"

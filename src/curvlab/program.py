"""The parser of a verb's words, and a console that prints text as it is."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console

from curvlab.config.folder import add
from curvlab.errors import UsageError


def with_home(words: Sequence[str]) -> list[str]:
    """Words with `~/` at the start of a value as the home folder."""
    return [re.sub(r"^([^=]+=)?~(?=/|$)", rf"\g<1>{Path.home()}", word) for word in words]


def plain_console(**options: Any) -> "Console":
    """A console that prints text as it is: a name such as `[/m/0abc]` is no markup."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, **options)


def in_time(seconds: float) -> str:
    """A time in two digits: `40 s`, `42 min`, `7.5 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{seconds / 3600:,.0f} h"


class Words(argparse.ArgumentParser):
    """A parser that answers wrong words in one sentence and leaves with exit code 2."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, in which `~/` is the home folder."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args(with_home(words), namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where the words are listed."""
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def parser(verb: str, doc: str | None) -> Words:
    """A parser of a verb's words, whose help is the docstring of its module."""
    made = Words(
        prog=f"curvlab {verb}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = "take configurations from this folder too, DIR or pkg://PACKAGE"
    made.add_argument("--config-dir", type=_added, metavar="DIR", help=what)
    return made


def _added(place: str) -> Path:
    """A folder of configurations, added, or argparse's error."""
    try:
        return add(place)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None

"""Errors that one sentence says, to the user and not to a debugger."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten
from traceback import walk_tb
from typing import NoReturn

LONGEST = 400
"""Characters of a sentence that is printed, with the program's name; two paths are within it."""

FAULT = "\n  - "  # the begin of each fault in an error with several of them

NO_ROOM = (
    "existing files are unchanged. Free disk space, or name another folder that can be written."
)


class UsageError(ValueError):
    """Wrong input from the user; the command line prints its sentence and exits with code 2."""


class DivergedError(RuntimeError):
    """Numbers are NaN or infinite; the message says where it began."""


def refuse(what: str, name: str, names: Iterable[str]) -> NoReturn:
    """Say that there is no such thing, and which the user may have meant."""
    names = [other for other in names if "._" not in other]  # a class is not for users
    last = [n for n in names if "." in n and n.rpartition(".")[2] == name.rpartition(".")[2]]
    close = [*dict.fromkeys([*last[:2], *get_close_matches(name, names)])][:3]
    if close:
        raise UsageError(f"there is no {what}; did you mean {' or '.join(close)}?")
    listed = ", ".join(other for other in names if "." not in other and "__" not in other)
    raise UsageError(f"there is no {what}; there is {shorten(listed, 240, placeholder=' ...')}")


def shortened(text: str) -> str:
    """A sentence that is not too long to be read: without the middle of one that would be."""
    text, end = " ".join(text.split()), LONGEST // 3
    return text if len(text) <= LONGEST else f"{text[: LONGEST - end - 5]} ... {text[-end:]}"


def shown(error: object) -> str:
    """An error as it is printed: each of its faults on a line."""
    return FAULT.join(map(shortened, str(error).split(FAULT)))


def one_sentence(error: Exception) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    expected = isinstance(error, UsageError | DivergedError)
    return shortened(text if expected else f"{type(error).__name__}: {text}")


def of_omegaconf(error: Exception) -> str:
    """Message of an OmegaConf error, without the types of its nodes."""
    return str(error).splitlines()[0]


def of_import(error: Exception) -> str:
    """Which package cannot be imported, and why: the innermost one whose code was running."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    names = [module.partition(".")[0] for module in modules]
    package = [name for name in names if name not in sys.stdlib_module_names][-1]
    reason = f"{type(error).__name__}: {shortened(str(error))}"
    return f"{package} cannot be imported ({reason}): mend its installation"


def of_system(error: OSError, otherwise: object = "a file") -> str:
    """Message of a system error, as `PATH: No space left on device`."""
    named = error.filename2 or error.filename  # of two files the one that was being written
    where = otherwise if named is None else named
    return f"{shortened(str(where))}: {shortened(error.strerror or str(error))}"

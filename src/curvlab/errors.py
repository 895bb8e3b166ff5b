"""Errors that the user reads as one sentence."""

import errno
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten
from traceback import walk_tb
from typing import NoReturn

LONGEST = 400
"""Characters of a sentence that is printed, with the program's name; two paths are within it."""

FAULT = "\n  - "  # the begin of each fault in an error with several of them

NO_ROOM = "Free disk space, or name another folder that can be written."
NO_SHARED_MEMORY = (
    "shared memory (/dev/shm) is full, which holds the batches of worker processes: enlarge it "
    "(docker run --shm-size=1g), or set batching.workers=0"
)
NO_HANDLES = "Raise the limit of open files (ulimit -n)."


class UsageError(ValueError):
    """Wrong input from the user; the command line prints its sentence and exits with code 2."""


class DivergedError(RuntimeError):
    """Values are NaN or infinite; the message says where they first occurred."""


class CheckpointError(RuntimeError):
    """The checkpoint is valid but was written by other code."""


class ProcessError(RuntimeError):
    """A process of a run ended without an exception, for instance because it was killed."""


def refuse(what: str, name: str, names: Iterable[str]) -> NoReturn:
    """Refuse an unknown name, with suggestions."""
    names = [other for other in names if "._" not in other]  # a class is not for users
    last = [n for n in names if "." in n and n.rpartition(".")[2] == name.rpartition(".")[2]]
    close = [*dict.fromkeys([*last[:2], *get_close_matches(name, names)])][:3]
    if close:
        raise UsageError(f"there is no {what}; did you mean {' or '.join(close)}?")
    listed = ", ".join(other for other in names if "." not in other and "__" not in other)
    raise UsageError(f"there is no {what}; there is {shorten(listed, 240, placeholder=' ...')}")


def shorten_sentence(text: str) -> str:
    """Shorten a long sentence by leaving out its middle."""
    text = " ".join(text.split())
    end = LONGEST // 3
    return text if len(text) <= LONGEST else f"{text[: LONGEST - end - 5]} ... {text[-end:]}"


def format_error(error: object) -> str:
    """Format an error for the terminal, one fault per line."""
    return FAULT.join(map(shorten_sentence, str(error).split(FAULT)))


def one_sentence(error: Exception) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    expected = isinstance(error, UsageError | DivergedError)
    return shorten_sentence(text if expected else f"{type(error).__name__}: {text}")


def omegaconf_message(error: Exception) -> str:
    """Message of an OmegaConf error, without node types."""
    return str(error).splitlines()[0]


def import_message(error: Exception) -> str:
    """Say which package cannot be imported and why: the innermost one whose code was running."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    names = [module.partition(".")[0] for module in modules]
    package = [name for name in names if name not in sys.stdlib_module_names][-1]
    reason = f"{type(error).__name__}: {shorten_sentence(str(error))}"
    return f"{package} cannot be imported ({reason}): repair its installation"


def lacks_shared_memory(error: Exception) -> bool:
    """Whether worker processes found no room for a batch in shared memory, by torch's message."""
    text = str(error)
    full = "shared memory" in text and "No space left" in text
    return full or "out of shared memory" in text or "insufficient shared memory" in text


def system_remedy(error: OSError) -> str:
    """What to do after a system error that kept a file from being written."""
    handles = error.errno in (errno.EMFILE, errno.ENFILE)
    return f"existing files are unchanged. {NO_HANDLES if handles else NO_ROOM}"


def system_message(error: OSError, otherwise: object = "a file") -> str:
    """Message of a system error, as `PATH: No space left on device`."""
    named = error.filename2 or error.filename  # of two files the one that was being written
    where = otherwise if named is None else named
    return f"{shorten_sentence(str(where))}: {shorten_sentence(error.strerror or str(error))}"

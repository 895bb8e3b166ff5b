"""Errors that the user reads as one sentence."""

import errno
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import shorten
from traceback import walk_tb
from typing import NoReturn

LONGEST = 400
"""Largest number of characters in a printed sentence: the program's name and two paths fit."""

FAULT = "\n  - "  # start of each fault's line in an error with several faults

MORE_THAN_A_MESSAGE = r"Config search path|\n +full_key:"
"""What follows a message of Hydra's, and one of OmegaConf's."""

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


def refuse(subject: str, name: str, choices: Iterable[str]) -> NoReturn:
    """Refuse an unknown name, with suggestions."""
    choices = [choice for choice in choices if "._" not in choice]  # private keys
    ending = f".{name.rpartition('.')[2]}"
    namesakes = [choice for choice in choices if choice.endswith(ending)]
    similar = [*namesakes[:2], *get_close_matches(name, choices)]
    if similar:
        suggestions = " or ".join(list(dict.fromkeys(similar))[:3])
        raise UsageError(f"there is no {subject}; did you mean {suggestions}?")
    simple = [choice for choice in choices if "." not in choice and "__" not in choice]
    text = shorten(", ".join(simple), 240, placeholder=" ...")
    raise UsageError(f"there is no {subject}; there is {text}")


def shorten_sentence(text: str) -> str:
    """Shorten a long sentence by leaving out its middle, but no command, which is to be pasted."""
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    sentence, before, command = text.partition(" by curvlab ")
    if command:
        return f"{shorten_sentence(sentence)}{before}{command}"
    tail = LONGEST // 3
    head = LONGEST - tail - 5
    return f"{text[:head]} ... {text[-tail:]}"


def format_error(error: object) -> str:
    """Format an error for the terminal, one fault per line."""
    return FAULT.join(map(shorten_sentence, str(error).split(FAULT)))


def error_sentence(error: Exception) -> str:
    """Format an exception in one line."""
    text = " ".join(str(error).split())
    if not isinstance(error, UsageError | DivergedError):
        text = f"{type(error).__name__}: {text}"
    return shorten_sentence(text)


def configuration_message(error: Exception) -> str:
    """Message of an error of Hydra or OmegaConf, or of the refusal by a resolver that caused it."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, UsageError):
            return str(behind)
        behind = behind.__cause__ or behind.__context__  # OmegaConf hides its context
    return re.split(MORE_THAN_A_MESSAGE, str(error))[0]


def import_message(error: Exception) -> str:
    """Name the package that cannot be imported: the innermost one on the traceback."""
    package = ""
    for frame, _ in walk_tb(error.__traceback__):
        name = frame.f_globals.get("__name__", "").partition(".")[0]
        if name not in sys.stdlib_module_names:
            package = name
    reason = f"{type(error).__name__}: {shorten_sentence(str(error))}"
    return f"{package} cannot be imported ({reason}): repair its installation"


def lacks_shared_memory(error: Exception) -> bool:
    """Whether shared memory was full when a worker process made a batch, by torch's message."""
    text = str(error)
    if "shared memory" in text and "No space left" in text:
        return True
    return "out of shared memory" in text or "insufficient shared memory" in text


def system_remedy(error: OSError) -> str:
    """The remedy after a system error that prevented the writing of a file."""
    has_no_handles = error.errno in (errno.EMFILE, errno.ENFILE)
    remedy = NO_HANDLES if has_no_handles else NO_ROOM
    return f"existing files are unchanged. {remedy}"


def system_message(error: OSError, default_name: object = "a file") -> str:
    """Message of a system error, such as `PATH: No space left on device`."""
    name = error.filename2 or error.filename  # of two files, the one that was being written
    if name is None:
        name = default_name
    reason = error.strerror or str(error)
    return f"{shorten_sentence(str(name))}: {shorten_sentence(reason)}"

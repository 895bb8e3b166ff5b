"""Errors that one sentence says, to the user and not to a debugger."""

import sys
from traceback import walk_tb

LONGEST = 400
"""Characters of a sentence that is printed, with the program's name; two paths are within it."""

LONGEST_WORD = 150
"""Characters of one word of it, which somebody may have typed."""

NO_ROOM = (
    "what was there before is as it was: make room, or name another folder that can be written."
)
"""What is to be done where the system refuses a file."""


class UsageError(ValueError):
    """Wrong input from the user; the command line prints its sentence and exits with code 2."""


def shortened(text: str) -> str:
    """A sentence that is not too long to be read: without the middle of what would be."""
    words = (_without_middle(word, LONGEST_WORD) for word in text.split(" "))
    return _without_middle(" ".join(words), LONGEST)


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 5]} ... {text[-end:]}"


def of_omegaconf(error: Exception) -> str:
    """What OmegaConf refused: its sentence, without the types of its nodes below it."""
    return str(error).splitlines()[0]


def of_import(error: Exception) -> str:
    """Which package cannot be imported, and why: the innermost one whose code was running."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    names = [module.partition(".")[0] for module in modules]
    package = [name for name in names if name not in sys.stdlib_module_names][-1]
    strict = sys.flags.optimize == 2 or "error" in sys.warnoptions
    flags = ", or start Python without -OO and -W error" if strict else ""
    return (
        f"{package} cannot be imported ({type(error).__name__}: {shortened(str(error))}): mend its "
        f"installation{flags}"
    )


def of_system(error: OSError, otherwise: object = "a file") -> str:
    """What the system refused, as `PATH: No space left on device`.

    Args:
        error: of the system.
        otherwise: what it was about, where the error does not say.
    """
    named = error.filename2 or error.filename  # of two files the one that was being written
    where = otherwise if named is None else named
    return f"{shortened(str(where))}: {shortened(error.strerror or str(error))}"

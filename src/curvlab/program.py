"""How this program was started, so that what it says can be typed as it stands."""

import argparse
import sys
from pathlib import Path

from curvlab.config.folder import REPOSITORY

SCRIPTS = {"data": "download"}
"""Verbs whose script in the repository goes by another name."""


def program(verb: str) -> str:
    """What a message begins with: `train.py` of a script, else `curvlab train`."""
    return Path(sys.argv[0]).name if _is_script() else f"curvlab {verb}"


def command(verb: str) -> str:
    """What is typed for a verb: a script where one was started, else `curvlab VERB`."""
    if not _is_script():
        return f"curvlab {verb}"
    if verb == "train":
        return "python train.py"
    return f"python scripts/{SCRIPTS.get(verb, verb)}.py"


def parser(verb: str, doc: str | None) -> argparse.ArgumentParser:
    """A parser of a verb's words, whose help is the docstring of its module, as typed here."""
    typed = command(verb).removeprefix("python ")
    return argparse.ArgumentParser(
        prog=program(verb),
        description=(doc or "").replace(f"curvlab {verb}", typed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _is_script() -> bool:
    """Whether one of the repository's scripts was started."""
    folder = Path(sys.argv[0]).resolve().parent
    return REPOSITORY is not None and folder in (REPOSITORY, REPOSITORY / "scripts")

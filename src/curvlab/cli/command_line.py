"""The command line: wrong words are answered in one sentence before anything is composed."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from curvlab.cli.help import page, screen
from curvlab.cli.overrides import check_overrides, chooses, first, parsed
from curvlab.config.compose import compose
from curvlab.config.folder import add, is_group
from curvlab.config.options import keys_of
from curvlab.errors import UsageError, shown

# Flags of Hydra that only show something.
INFORMATION = {"--hydra-help", "--info", "-i", "--version", "--cfg", "-c", "-sc"}
MULTIRUN = ("-m", "--multirun")


def complain(message: str) -> NoReturn:
    """Print an error and leave with exit code 2."""
    text = shown(f"curvlab train: {message}").rstrip(".")
    print(text if text.endswith("?") else f"{text}.", file=sys.stderr)
    sys.exit(2)


def check_command_line(arguments: Sequence[str], config_dir: Path) -> list[str]:
    """Check the words after `curvlab train` against the configurations; print help asked for.

    Returns the words as Hydra wants them: `-m` first, since it refuses it between others, and in a
    sweep `++` before keys that only the cells have.
    """
    multirun = any(word in MULTIRUN for word in arguments)
    arguments = sorted(arguments, key=lambda word: word not in MULTIRUN)
    words = [word for word in arguments if not word.startswith("-")]
    topics = [word.partition("=")[2] for word in words if word.startswith("help=")]
    if topics or {"--help", "-h"}.intersection(arguments):
        pages = [page(topic, config_dir) for topic in topics] or [screen(config_dir).rstrip()]
        print("\n\n".join(pages))
        sys.exit(0)
    if INFORMATION.intersection(arguments):
        return arguments
    unknown = [word for word in arguments if word not in words and word not in MULTIRUN]
    if unknown:
        key = unknown[0].lstrip("-").partition("=")[0]
        instead = f"say {key}=..., or " if is_group(config_dir, key) or "." in key else ""
        raise UsageError(f"there is no {unknown[0]} here; {instead}see curvlab train --help")
    check_overrides(words, config_dir, multirun)
    return _with_keys_of_cells(arguments, config_dir) if multirun else arguments


def take_folders(arguments: Sequence[str]) -> list[str]:
    """Add the folders that `--config-dir` and `hydra.searchpath` name; the other words."""
    words, kept = iter(arguments), []
    for word in words:
        flag, _, place = word.partition("=")
        if flag in ("--config-dir", "-cd"):
            add(place or next(words, ""))
        elif flag == "hydra.searchpath":
            named = parsed(word).value()
            for each in named if isinstance(named, list) else [named]:
                add(str(each))
        else:
            kept.append(word)
    return kept


def _with_keys_of_cells(arguments: list[str], config_dir: Path) -> list[str]:
    """Mark keys that the configuration without the swept choices does not have.

    Hydra composes that one first, for its own part, and would refuse `trainer.patience=50` of
    `dataset=cora,texas`, whose task brings the trainer with that key.
    """
    fixed = {w: o for w in arguments if "=" in w and not (o := parsed(w)).is_sweep_override()}
    groups = [first(o) for o in fixed.values() if chooses(o.key_or_group, config_dir)]
    known = keys_of(compose(groups, config_dir))
    only_there = {
        word
        for word, o in fixed.items()
        if "." in (key := o.key_or_group)
        and not (o.is_add() or key.startswith("hydra") or key in known)
    }
    return [f"++{word}" if word in only_there else word for word in arguments]

"""What constructors say of their arguments, in the words of the command line.

A constructor speaks Python: `heads=3 does not divide dim=16`, `midpoint=None`. Where a
configuration has named its arguments, the same sentence has the configuration's keys:
`model.heads=3`, `model.midpoint=null`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from curvlab.config.schema import options_of

LITERALS = {"None": "null", "True": "true", "False": "false"}


def in_command_words(sentence: str, config: Mapping[str, Any], key: str) -> str:
    """A constructor's sentence with the keys of what it was built from.

    Args:
        sentence: in Python's words.
        config: what was built; objects inside it have a `_target_` of their own.
        key: where it stands in the run's configuration.
    """
    keys: dict[str, str] = {}
    for name, path in _named(config, key):
        keys.setdefault(name, path)
    if not keys:
        return sentence
    names = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    found = re.sub(
        rf"(?<![\w.'])({names})=('?)(\w*)\2",
        lambda match: f"{keys[match[1]]}={match[3]}",
        sentence,
    )
    return re.sub(rf"\b({'|'.join(LITERALS)})\b", lambda match: LITERALS[match[1]], found)


def _named(config: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
    """Options of an object and their keys, then those of the objects that are part of it."""
    options = options_of(str(config.get("_target_", "")))
    yield from ((name, f"{key}.{name}") for name, option in options.items() if option.settable)
    for name, value in config.items():
        if isinstance(value, Mapping) and "_target_" in value:
            spaces = name in options and options[name].spaces
            yield from _named(value, str(name) if spaces else f"{key}.{name}")

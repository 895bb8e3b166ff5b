"""What constructors say of their arguments, in the words of the command line.

A constructor speaks Python: `heads=3 does not divide dim=16`, `midpoint=None`. Where a
configuration has named its arguments, the same sentence has the configuration's keys:
`model.heads=3`, `model.midpoint=null`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

from omegaconf import DictConfig

from curvlab.config.schema import options_of
from curvlab.errors import UsageError

LITERALS = {"None": "null", "True": "true", "False": "false"}


# Not an attribute: caches are named by what an object has.
_BUILT: WeakKeyDictionary[Any, tuple[DictConfig, str]] = WeakKeyDictionary()


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
    literals = rf"(?<![\w'./])({'|'.join(LITERALS)})(?![\w'/])"
    return re.sub(literals, lambda match: LITERALS[match[1]], found)


def _key(config: Mapping[str, Any], name: str) -> str:
    """The key that an option's value comes from, as `${dataset.path}`; empty if it is its own."""
    node = config._get_node(name, validate_access=False) if isinstance(config, DictConfig) else None
    raw = node._value() if node is not None else None
    found = re.fullmatch(r"\$\{([\w.]+)\}", raw) if isinstance(raw, str) else None
    return found[1] if found else ""


def remember(built: Any, config: DictConfig) -> None:
    """Let what an object says later, too, have the keys of the configuration it was built from."""
    with suppress(TypeError):  # of an object that is not hashable, which then speaks Python
        _BUILT[built] = config, config._get_full_key(None)


@contextmanager
def in_words_of(built: Any) -> Iterator[None]:
    """Say what an object refuses within the block by the keys that it was built from, if any.

    Raises:
        UsageError: what it raised, in the words of the command line if it was built by one.
    """
    try:
        yield
    except UsageError as error:
        origin = None
        with suppress(TypeError):
            origin = _BUILT.get(built)
        if origin is None:
            raise
        raise UsageError(in_command_words(str(error), *origin)) from error


def _named(config: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
    """Options of an object and their keys, then those of the objects that are part of it."""
    options = options_of(str(config.get("_target_", "")))
    settable = (name for name, option in options.items() if option.settable)
    yield from ((name, _key(config, name) or f"{key}.{name}") for name in settable)
    for name, value in config.items():
        if isinstance(value, Mapping) and "_target_" in value:
            spaces = name in options and options[name].spaces
            yield from _named(value, str(name) if spaces else f"{key}.{name}")

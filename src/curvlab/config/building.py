"""Instantiate configurations, with the configuration's keys in the constructors' errors."""

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from curvlab.config.schema import options_of
from curvlab.config.validation import DECISIVE
from curvlab.errors import UsageError
from curvlab.options import FROM_DATA

PACKAGE = Path(__file__).parents[1]
ARGUMENT_ERRORS = ("unexpected keyword argument", "required positional", "required keyword-only")

CHOICES = {*DECISIVE} - {"seed"}
"""Groups whose files a user chooses by name."""

LITERALS = {"None": "null", "True": "true", "False": "false"}


class Key(NamedTuple):
    """An argument's key in the configuration, and its value."""

    name: str
    value: Any


def build(config: DictConfig | dict[Any, Any], key: str = "", /, **arguments: Any) -> Any:
    """Instantiate a configuration; `key` is the key of a copy in the run's configuration."""
    try:
        return instantiate(config, **arguments)
    except InstantiationException as error:
        cause = error.__cause__ or error
        if not key and isinstance(config, DictConfig):
            key = config._get_full_key(None)
        if type(cause) is UsageError and key:
            raise UsageError(_name_keys(str(cause), dict(_keys(config, key)))) from cause
        if not _is_of_values(cause):
            raise cause from None
        target = config.get("_target_")
        subject = f"{key} ({target})" if key else target
        reason = " ".join(str(cause).split()) or type(cause).__name__
        raise UsageError(f"{subject} cannot be built with its values: {reason}") from cause


def build_group(
    group: DictConfig, data: Any = None, manifold: DictConfig | None = None, **arguments: Any
) -> Any:
    """Build the class of a group, such as `config.model`, whose other keys describe it.

    The constructor takes the keys that are in its signature, attributes of `data` where it marks
    them `FromData`, the maker of spaces that `manifold` configures, and `arguments`.
    """
    options = _arguments_in(group)
    for name, option in options_of(group._target_).items():
        if option.spaces:
            assert manifold is not None
            options[name] = _arguments_in(manifold)
        elif FROM_DATA in option.marks:
            options[name] = getattr(data, name)
    return build(options, group._get_full_key(None), **arguments)


def _arguments_in(group: DictConfig) -> dict[str, Any]:
    """The keys of a group, resolved, that are in the signature of its class."""
    options = OmegaConf.to_container(group, resolve=True)
    signature = options_of(group._target_)
    assert isinstance(options, dict)
    return {str(k): v for k, v in options.items() if k in signature or str(k).startswith("_")}


@contextmanager
def name_keys_in_errors(*nodes: DictConfig | None) -> Iterator[None]:
    """Name the configuration's keys in errors of its objects within the block."""
    try:
        yield
    except UsageError as error:
        keys: dict[str, Key] = {}
        for node in nodes:
            if node:
                keys.update(_keys(node, node._get_full_key(None)))
        raise UsageError(_name_keys(str(error), keys)) from error


def _is_of_values(error: BaseException) -> bool:
    """Whether an error other than `UsageError` is a library's refusal of a value."""
    if isinstance(error, InstantiationException):  # the target cannot be called
        return True
    if isinstance(error, TypeError) and any(text in str(error) for text in ARGUMENT_ERRORS):
        return True
    if not isinstance(error, TypeError | ValueError | AssertionError | ImportError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return not frames or PACKAGE not in Path(frames[-1].filename).parents


def _name_keys(sentence: str, keys: Mapping[str, Key]) -> str:
    """Replace a constructor's argument names by the configuration's keys.

    A name that is also a group's, as in `split=quota`, is the argument's only before its value.
    """
    if not keys:
        return sentence

    def named(match: re.Match[str]) -> str:
        name, _, value = match.groups()
        key = keys[name]
        return match[0] if name in CHOICES and value != str(key.value) else f"{key.name}={value}"

    names = "|".join(sorted(map(re.escape, keys), key=len, reverse=True))
    sentence = re.sub(rf"(?<![\w.'])({names})=('?)(\w*)\2", named, sentence)
    literals = rf"(?<![\w'./])({'|'.join(LITERALS)})(?![\w'/])"
    return re.sub(literals, lambda match: LITERALS[match[1]], sentence)


def _keys(config: Mapping[str, Any], key: str) -> Iterator[tuple[str, Key]]:
    """Options and keys of an object's parts, then of the object itself, which take precedence."""
    options = options_of(str(config.get("_target_", "")))
    for name, value in config.items():
        if isinstance(value, Mapping) and "_target_" in value:
            spaces = name in options and options[name].spaces
            yield from _keys(value, str(name) if spaces else f"{key}.{name}")
    for name, option in options.items():
        if not option.settable:
            continue
        value = config.get(name, option.default)
        node = config._get_node(name, False) if isinstance(config, DictConfig) else None
        reference = re.fullmatch(r"\$\{([\w.]+)\}", str(getattr(node, "_value", str)()))
        yield name, Key(reference[1] if reference else f"{key}.{name}", value)

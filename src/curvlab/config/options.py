"""Values of a configuration, checked by the annotations of the classes that they are for."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from curvlab.checked import shown
from curvlab.config.schema import GROUPS, Option, options_of
from curvlab.errors import UsageError

DECISIVE = (
    "model", "manifold", "dataset", "split", "task", "batching", "optimizer", "trainer",
    "callbacks", "search", "seed",
)  # fmt: skip
"""Parts of a configuration that can decide a result."""

SMALLEST, LARGEST = 1e-30, 1e20
"""Of numbers other than 0: single precision has them, and their neighbours in a computation."""


def option_of(node: Mapping[str, Any] | DictConfig, path: str, name: str) -> Option | None:
    """The option that a key of a node is; None for a key that no signature has."""
    target = node.get("_target_", GROUPS.get(path))
    return options_of(str(target)).get(name) if target else None


def keys_of(config: DictConfig, prefix: str = "") -> list[str]:
    """All keys of a configuration, those below others too."""
    found = []
    for name in config:
        path = f"{prefix}{name!s}"
        found.append(path)
        node = config._get_node(name)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_interpolation():
            found += keys_of(node, f"{path}.")
    return found


def check_options(config: DictConfig) -> None:
    """Check every value of a composed configuration, resolved."""
    raw = dict(_mappings(OmegaConf.to_container(config, resolve=False)))
    for path, node in _mappings(OmegaConf.to_container(config, resolve=True)):
        for name, value in node.items():
            key, option = f"{path}.{name}".lstrip("."), option_of(node, path, str(name))
            other = re.fullmatch(r"\$\{([\w.]+)\}", str(raw.get(path, {}).get(name)))
            check_value(other[1] if other and option is not None else key, option, value)


def check_setting(key: str, config: DictConfig, value: Any) -> None:
    """Check one value that is to replace another."""
    path, _, name = key.rpartition(".")
    node = OmegaConf.select(config, path) if path else config
    check_value(key, option_of(node, path, name) if isinstance(node, DictConfig) else None, value)


def check_value(key: str, option: Option | None, value: Any) -> None:
    """Check a plain value by its option; any text fits on a line, any number into float32."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and not each.isprintable():
            raise UsageError(f"{key}={each!r} must be one line of printable characters")
        sized = type(each) is int or (type(each) is float and math.isfinite(each))
        if sized and each and not SMALLEST <= abs(each) <= LARGEST:
            raise UsageError(
                f"{key}={each} is no size to compute with: give 0, or a number from "
                f"{SMALLEST:g} to {LARGEST:g} or from -{LARGEST:g} to -{SMALLEST:g}"
            )
    if key.endswith("_target_") and not isinstance(value, str):
        raise UsageError(f"{key}={shown(value)} must name a class")
    if option is not None and not option.spaces and option.problem(value) is not None:
        typed = f"{key} with keys" if isinstance(value, dict) else f"{key}={shown(value)}"
        raise UsageError(f"{typed} must be {option.says}")


def _mappings(node: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted paths and mappings of a nested container, the outermost first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from _mappings(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _mappings(value, f"{path}[{i}]")


def decides(key: str, config: Mapping[str, Any]) -> bool:
    """Whether a key of a configuration, or a group's choice, can decide its result."""
    first, *rest = key.split(".")
    if first not in DECISIVE:
        return False
    node: Any = config.get(first)
    for name in rest:
        if not isinstance(node, Mapping):
            return True
        option = options_of(str(node.get("_target_", ""))).get(name)
        if option is not None and option.incidental:
            return False
        node = node.get(name)
    return True

"""Values of a configuration, checked by the annotations of the classes that they are for."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from omegaconf import DictConfig, ListConfig, OmegaConf

from curvlab.config.schema import MISSING, Option, options_of
from curvlab.errors import UsageError
from curvlab.kinds import UNIONS, Part, bare, in_words

DECISIVE = (
    "model", "manifold", "dataset", "split", "task", "batching", "optimizer", "trainer", "search",
    "seed",
)  # fmt: skip
"""Parts of a configuration that can decide a result."""

GROUPS = {
    "": "curvlab.run.options.RunOptions",
    "dataset": "curvlab.run.options.DatasetOptions",
    "paths": "curvlab.run.options.PathsOptions",
    "search": "curvlab.search.options.SearchOptions",
    "study": "curvlab.study.options.StudyOptions",
}
"""Classes of those parts of a configuration that have no `_target_`, since they are not built."""

SMALLEST, LARGEST = 1e-30, 1e20
"""Of numbers other than 0: single precision has them, and their neighbours in a computation."""


def option_of(node: Mapping[str, Any] | DictConfig, path: str, name: str) -> Option | None:
    """The option that a key of a node is; None for a key that no signature has.

    Args:
        node: the mapping that the key is in, resolved or not.
        path: of the node, dotted; empty for the whole configuration.
        name: of the key.
    """
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
    """Check every value of a composed configuration, resolved.

    Raises:
        UsageError: the first that its class does not take.
    """
    raw = dict(_mappings(OmegaConf.to_container(config, resolve=False)))
    for path, node in _mappings(OmegaConf.to_container(config, resolve=True)):
        for name, value in node.items():
            own = f"{path}.{name}" if path else str(name)
            check_plain(own, value)
            option = option_of(node, path, str(name))
            if option is not None and option.settable:
                other = re.fullmatch(r"\$\{([\w.]+)\}", str(raw.get(path, {}).get(name)))
                check_value(other[1] if other else own, option, value)


def check_setting(key: str, config: DictConfig, value: Any) -> None:
    """Check one value that is to replace another.

    Args:
        key: dotted.
        config: the composed configuration without the value.
        value: a plain one.

    Raises:
        UsageError: it is of another kind than the key's, or out of bounds.
    """
    check_plain(key, value)
    path, _, name = key.rpartition(".")
    node = OmegaConf.select(config, path) if path else config
    option = option_of(node, path, name) if isinstance(node, DictConfig) else None
    old = OmegaConf.select(config, key)
    if name == "_target_" and not isinstance(value, str):
        raise UsageError(f"{key}={_shown(value)} must name a class, as {key}={old}")
    if isinstance(old, DictConfig):
        may_go = value is None and option is not None and option.problem(None) is None
        if not isinstance(value, dict) and not may_go:
            names = [str(name) for name in old if not str(name).startswith("_")]
            raise UsageError(
                f"{key} has keys of its own, as {key}.{names[0] if names else '...'}: set these, "
                f"not {_shown(value)}"
            )
        return
    if option is not None:
        check_value(key, option, value, old)


def check_plain(key: str, value: Any) -> None:
    """Check what holds of every value: words fit on a line, numbers into single precision.

    Raises:
        UsageError: with the key.
    """
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and not each.isprintable():
            raise UsageError(f"{key}={each!r} must be one line of printable characters")
        if isinstance(each, bool) or not isinstance(each, int | float):
            continue
        if isinstance(each, float) and not math.isfinite(each):
            continue
        if each and not SMALLEST <= abs(each) <= LARGEST:
            raise UsageError(
                f"{key}={_shown(each)} is no size to compute with: give 0, or a number from "
                f"{SMALLEST:g} to {LARGEST:g} or from -{LARGEST:g} to -{SMALLEST:g}"
            )


def check_value(key: str, option: Option, value: Any, old: Any = MISSING) -> None:
    """Check a value by its option.

    Args:
        key: dotted.
        option: of the key.
        value: a plain one.
        old: what stands there, if anything.

    Raises:
        UsageError: it is of another kind, or out of bounds.
    """
    if option.problem(value) is None:
        return
    old = option.default if old is MISSING else old
    if isinstance(old, ListConfig):
        old = list(old)
    if _is_part(option.annotation):
        raise UsageError(
            f"{key} is null here and cannot be {_shown(value)}: choose another "
            f"{key.partition('.')[0]}=... that has keys for it, or leave it null"
        )
    kind = bare(option.annotation)
    is_finite = not isinstance(value, float) or math.isfinite(value)
    wrong_kind = is_finite and Option("", kind, None, False, "").problem(value) is not None
    if wrong_kind and old is not MISSING and old is not None and not _is_choice(option.annotation):
        raise UsageError(
            f"{key} is {in_words(kind)}, as in {key}={_shown(old)}, not {_shown(value)}"
        )
    raise UsageError(f"{key}={_shown(value)} must be {option.says}")


def _is_part(kind: Any) -> bool:
    return kind is Part or set(get_args(kind)) == {Part, type(None)}


def _is_choice(kind: Any) -> bool:
    parts = get_args(kind) if get_origin(kind) in UNIONS else (kind,)
    return any(get_origin(part) is Literal for part in parts)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(_shown(v) for v in value)}]"
    return "null" if value is None else str(value)


def _mappings(node: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted paths and mappings of a nested container, the outermost first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from _mappings(value, f"{path}.{key}" if path else str(key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _mappings(value, f"{path}[{i}]")


def decides(key: str, config: Mapping[str, Any]) -> bool:
    """Whether a key of a configuration, or a group's choice, can decide its result.

    Args:
        key: dotted, such as `trainer.max_steps`, or a group.
        config: a configuration that has it, as `stored` returns it.
    """
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

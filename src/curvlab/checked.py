"""Types of options: their allowed values, descriptions, and constructors that check them."""

import collections.abc
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from numbers import Number
from typing import Any, ClassVar, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from annotated_types import BaseMetadata, GroupedMetadata, Predicate
from omegaconf import OmegaConf
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import core_schema

from curvlab.documentation import Documentation
from curvlab.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[str, Any, dict[str, Any]], None]
"""Refuses or converts arguments, by the name of the class, its annotations and the arguments."""

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
UNIONS = (typing.Union, types.UnionType)
PART = "a mapping of keys"
PLAIN = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Any: "any value",
}
LIMITS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


class Part:
    """An argument that a nested `_target_` builds or code passes."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.union_schema([core_schema.dict_schema(), core_schema.list_schema()])


def valid(kind: Any, value: Any) -> bool:
    """Whether a value fits a type; integers count as floats, nothing else is converted."""
    try:
        _adapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=STRICT)


def constraints(kind: Any) -> list[Any]:
    """Constraints of an `Annotated` type; an interval counts as its two bounds."""
    if get_origin(kind) is not typing.Annotated:
        return []
    flat = list[Any]()
    for mark in get_args(kind)[1:]:
        if isinstance(mark, GroupedMetadata):
            flat.extend(mark)
        else:
            flat.append(mark)
    return flat


def is_bounded(kind: Any) -> bool:
    """Whether a type holds plain values with bounds or choices, or sequences of them, or None."""
    origin = get_origin(kind)
    args = get_args(kind)
    if origin in UNIONS:
        members = [arg for arg in args if arg is not type(None)]
        describable = all(is_bounded(member) or member in PLAIN for member in members)
        return describable and any(map(is_bounded, members))
    if origin is typing.Annotated:
        has_bounds = any(isinstance(mark, BaseMetadata) for mark in constraints(kind))
        return has_bounds or is_bounded(args[0])
    return origin is typing.Literal


def describe_type(kind: Any) -> str:
    """Describe the allowed values of a type."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin = get_origin(kind)
    args = get_args(kind)
    if origin is typing.Annotated:
        return _describe_annotated(args[0], constraints(kind))
    if origin is typing.Literal:
        return f"one of {', '.join(map(format_value, args))}"
    if origin in UNIONS:
        return _describe_union(args)
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return "keys with values"
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        if not args or args[0] is Any:
            return "a list"
        return f"a list, each {describe_type(args[0])}"
    return PART


def _describe_annotated(kind: Any, marks: Sequence[Any]) -> str:
    limits = list[str]()
    for mark in marks:
        if isinstance(mark, Predicate):
            text = (mark.func.__doc__ or "").rstrip(".")
            return text[0].lower() + text[1:]
        bounds = [name for name in LIMITS if hasattr(mark, name)]
        limits += [f"{LIMITS[name]} {getattr(mark, name)}" for name in bounds]
    if not limits:
        return describe_type(kind)
    conjunction = " of " if limits[0].startswith("at") else " "
    return f"{describe_type(kind)}{conjunction}{' and '.join(limits)}"


def _describe_union(kinds: Sequence[Any]) -> str:
    members = [kind for kind in kinds if kind is not type(None)]
    texts = list(dict.fromkeys(map(describe_type, members)))
    if len(texts) > 1:
        texts = [text for text in texts if text != PART]
    text = " or ".join(texts)
    return f"{text}, or null" if type(None) in kinds else text


def format_value(value: Any) -> str:
    """Format a value as the user types it."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def check_values(owner: str, annotated: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse values that are out of bounds or not among the choices."""
    for name, kind in _bounded_annotations(annotated).items():
        if name not in arguments:
            continue
        value = arguments[name]
        if not valid(kind, _plain(value)):
            description = describe_type(kind).replace("null", "None")
            raise UsageError(f"{owner}: {name}={value!r} must be {description}")


def _plain(value: Any) -> Any:
    """Convert numbers of NumPy or torch, and lists and mappings of a configuration, to Python's."""
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=True)
    if isinstance(value, Number) and hasattr(value, "item"):
        return value.item()
    return value


@cache
def _bounded_annotations(annotated: Any) -> dict[str, Any]:
    """Annotations with bounds or choices, resolved when all names are defined."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: hint for name, hint in hints.items() if is_bounded(hint)}


class Checked:
    """Base of classes whose constructors refuse arguments that their annotations do not allow."""

    _checks: ClassVar[tuple[Check, ...]] = (check_values,)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(vars(cls).get("__doc__"), str):
            cls.__doc__ = Documentation(vars(cls)["__doc__"])  # type: ignore[assignment]
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__, cls._checks)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        """Check a dataclass: its constructor does not exist in `__init_subclass__`."""
        check_values(type(self).__name__, type(self), vars(self))


@typing.dataclass_transform(eq_default=False)
class CheckedFields(Checked):
    """`Checked` whose subclasses are dataclasses: annotations with values are arguments."""

    def __init_subclass__(cls, kw_only: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        documentation = vars(cls).get("__doc__")
        cls.__doc__ = getattr(documentation, "text", None)  # `dataclass` reads it
        dataclass(eq=False, kw_only=kw_only)(cls)
        cls.__doc__ = documentation


def checked(
    function: Callable[P, R], checks: tuple[Check, ...] = (check_values,)
) -> Callable[P, R]:
    """Decorate a constructor or factory so that it checks its arguments."""
    parameters = signature(function)

    @wraps(function)
    def check_and_call(*args: P.args, **options: P.kwargs) -> R:
        owner = function.__name__
        if owner == "__init__":
            owner = type(args[0]).__name__
        try:
            bound = parameters.bind_partial(*args, **options)
        except TypeError:
            return function(*args, **options)  # Python's own message is better
        for check in checks:
            check(owner, function, bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return check_and_call

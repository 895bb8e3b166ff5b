"""Types of options: allowed values, their description, and constructors that check them."""

import collections.abc
import types
import typing
from collections.abc import Callable, Mapping
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


def marks_of(kind: Any) -> list[Any]:
    """Constraints of an `Annotated` type, intervals by their ends."""
    marks = get_args(kind)[1:] if get_origin(kind) is typing.Annotated else ()
    return [one for m in marks for one in (m if isinstance(m, GroupedMetadata) else [m])]


def is_bounded(kind: Any) -> bool:
    """Whether a type holds plain values with bounds or choices, or sequences of them, or None."""
    origin = get_origin(kind)
    args = get_args(kind)
    if origin in UNIONS:
        others = [arg for arg in args if arg is not type(None)]
        return any(map(is_bounded, others)) and all(is_bounded(a) or a in PLAIN for a in others)
    if origin is typing.Annotated:
        return is_bounded(args[0]) or any(isinstance(m, BaseMetadata) for m in marks_of(kind))
    return origin is typing.Literal


def describe_type(kind: Any) -> str:
    """Describe the allowed values of a type."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin = get_origin(kind)
    args = get_args(kind)
    if origin is typing.Annotated:
        for mark in marks_of(kind):
            if isinstance(mark, Predicate):
                words = (mark.func.__doc__ or "").rstrip(".")
                return words[0].lower() + words[1:]
        bounds = [(name, mark) for mark in marks_of(kind) for name in LIMITS if hasattr(mark, name)]
        limits = [f"{LIMITS[name]} {getattr(mark, name)}" for name, mark in bounds]
        if not limits:
            return describe_type(args[0])
        joint = " of " if limits[0].startswith("at") else " "
        return f"{describe_type(args[0])}{joint}{' and '.join(limits)}"
    if origin is typing.Literal:
        return f"one of {', '.join(map(format_value, args))}"
    if origin in UNIONS:
        others = dict.fromkeys(describe_type(arg) for arg in args if arg is not type(None))
        words = " or ".join(w for w in others if w != PART or len(others) == 1)
        return f"{words}, or null" if type(None) in args else words
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return "keys with values"
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        return f"a list, each {describe_type(args[0])}" if args and args[0] is not Any else "a list"
    return PART


def format_value(value: Any) -> str:
    """Format a value as the user types it."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def check_values(owner: str, annotated: Any, given: Mapping[str, Any]) -> None:
    """Refuse values that are out of bounds or not among the choices."""
    for name, kind in _bounded_annotations(annotated).items():
        value = given.get(name)
        if name in given and not valid(kind, _plain(value)):
            says = describe_type(kind).replace("null", "None")
            raise UsageError(f"{owner}: {name}={value!r} must be {says}")


def _plain(value: Any) -> Any:
    """The value of a number of numpy's or torch's, and lists and mappings of a configuration."""
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=True)
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value


@cache
def _bounded_annotations(annotated: Any) -> dict[str, Any]:
    """Annotations with bounds or choices, resolved when all names are defined."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: hint for name, hint in hints.items() if is_bounded(hint)}


class Checked:
    """Base of classes whose constructors, or fields, refuse what their annotations do not allow."""

    _checks: ClassVar[tuple[Check, ...]] = (check_values,)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(vars(cls).get("__doc__"), str):
            cls.__doc__ = Documentation(vars(cls)["__doc__"])  # type: ignore[assignment]
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__, cls._checks)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        """Check a dataclass, whose constructor is made after the class."""
        check_values(type(self).__name__, type(self), vars(self))


@typing.dataclass_transform(eq_default=False)
class CheckedFields(Checked):
    """`Checked` whose subclasses are dataclasses: annotations with values are arguments."""

    def __init_subclass__(cls, kw_only: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        documentation = vars(cls).get("__doc__")
        cls.__doc__ = getattr(documentation, "text", None)  # which `dataclass` reads
        dataclass(eq=False, kw_only=kw_only)(cls)
        cls.__doc__ = documentation


def checked(made: Callable[P, R], checks: tuple[Check, ...] = (check_values,)) -> Callable[P, R]:
    """Decorate a constructor or factory so that it checks its arguments."""
    named = signature(made)

    @wraps(made)
    def checking(*args: P.args, **options: P.kwargs) -> R:
        owner = type(args[0]).__name__ if made.__name__ == "__init__" else made.__name__
        try:
            bound = named.bind_partial(*args, **options)
        except TypeError:
            return made(*args, **options)  # says it better
        for check in checks:
            check(owner, made, bound.arguments)
        return made(*bound.args, **bound.kwargs)

    return checking

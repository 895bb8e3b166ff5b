"""Kinds of values: whether a value is of a kind, and what the kind is in words.

A kind is a type with bounds, as annotations of constructors have it. Nothing here imports torch.
"""

import collections.abc
import types
import typing
from functools import cache
from typing import Any, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt, Predicate
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import core_schema

STRICT = ConfigDict(strict=True, allow_inf_nan=False)

BOUNDS = (Ge, Gt, Le, Lt, Interval, Predicate)
UNIONS = (typing.Union, types.UnionType)
PART = "keys of its own"
WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Any: "any value",
}


class Part:
    """What a configuration builds by a `_target_` of its own, or what code passes."""

    def __class_getitem__(cls, item: Any) -> type["Part"]:
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.union_schema([core_schema.dict_schema(), core_schema.list_schema()])


def valid(kind: Any, value: Any) -> bool:
    """Whether a value is of a kind; whole numbers are numbers, nothing else is converted."""
    try:
        _adapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=STRICT)


def is_bounded(kind: Any) -> bool:
    """Whether a kind is of plain values with bounds or choices, and what is alike or None."""
    origin = get_origin(kind)
    if origin in UNIONS:
        args = [arg for arg in get_args(kind) if arg is not type(None)]
        return any(map(is_bounded, args)) and all(is_bounded(arg) or arg in WORDS for arg in args)
    if origin is typing.Annotated:
        base, *marks = get_args(kind)
        return is_bounded(base) or any(isinstance(mark, BOUNDS) for mark in marks)
    return origin is typing.Literal


def in_words(kind: Any) -> str:
    """The values of a type in words."""
    if get_origin(kind) is typing.Annotated:
        base, *marks = get_args(kind)
        for mark in marks:
            if isinstance(mark, Predicate) and mark.func.__doc__:
                words = mark.func.__doc__.rstrip(".")
                return words[0].lower() + words[1:]
        return in_words(base) + _bounds(marks)
    if kind in WORDS:
        return WORDS[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is typing.Literal:
        return f"one of {', '.join(_shown(value) for value in args)}"
    if origin in UNIONS:
        others = [in_words(arg) for arg in args if arg is not type(None)]
        words = " or ".join(w for w in dict.fromkeys(others) if w != PART or others == [PART])
        return f"{words}, or null" if type(None) in args else words
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return "keys with values"
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        return f"a list, each {in_words(args[0])}" if args and args[0] is not Any else "a list"
    return PART


def _bounds(marks: list[Any]) -> str:
    """What bounds say after a kind."""
    low: Any = None
    high: Any = None
    strict_low = strict_high = False
    for mark in marks:
        if isinstance(mark, Ge | Interval) and mark.ge is not None:
            low = mark.ge
        if isinstance(mark, Gt | Interval) and mark.gt is not None:
            low, strict_low = mark.gt, True
        if isinstance(mark, Le | Interval) and mark.le is not None:
            high = mark.le
        if isinstance(mark, Lt | Interval) and mark.lt is not None:
            high, strict_high = mark.lt, True
    if low is None and high is None:
        return ""
    if high is None:
        return f" greater than {low}" if strict_low else f" of at least {low}"
    if low is None:
        return f" less than {high}" if strict_high else f" of at most {high}"
    if strict_low and strict_high:
        return f" between {low} and {high}"
    if strict_high:
        return f" from {low} up to, but not including, {high}"
    return f" from {low} to {high}" if not strict_low else f" greater than {low}, up to {high}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def bare(kind: Any) -> Any:
    """A type without its bounds."""
    if get_origin(kind) is typing.Annotated:
        return bare(get_args(kind)[0])
    if get_origin(kind) in UNIONS:
        return typing.Union[tuple(bare(arg) for arg in get_args(kind))]  # noqa: UP007
    return kind

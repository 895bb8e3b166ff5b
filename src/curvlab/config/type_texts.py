"""Types of options as texts: `int | None`, `Annotated[float, Ge(ge=0)]`."""

import ast
import collections.abc
import typing
from functools import cache
from typing import Any, get_args, get_origin

import annotated_types

from curvlab import options as aliases
from curvlab.checked import UNIONS, Part
from curvlab.options import Configured

BOUNDS = ("Ge", "Gt", "Le", "Lt", "Interval", "Predicate")

BUILT_IN = (int, float, bool, str, list, tuple, dict, set)
ABSTRACT = (collections.abc.Sequence, collections.abc.Mapping, collections.abc.Iterable)

NAMES: dict[str, Any] = {kind.__name__: kind for kind in (*BUILT_IN, Part)}
for _module in (typing, collections.abc, annotated_types, aliases):
    NAMES |= {name: value for name, value in vars(_module).items() if not name.startswith("_")}

TYPE_NAMES = {Any: "Any", type(None): "None", ...: "..."}
TYPE_NAMES |= {kind: kind.__name__ for kind in (*BUILT_IN, *ABSTRACT)}
"""Types by their text; any other type is a `Part`."""


def format_type(kind: Any) -> str:
    """Format a type as text, with `Part` for a type that no value of a file has."""
    origin = get_origin(kind)
    args = get_args(kind)
    if origin in UNIONS:
        return " | ".join(dict.fromkeys(map(format_type, args)))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin is typing.Annotated:
        base = format_type(args[0])
        bounds = [
            _format_bound(mark) for mark in args[1:] if not isinstance(mark, str | Configured)
        ]
        return f"Annotated[{', '.join([base, *bounds])}]" if bounds else base
    name = TYPE_NAMES.get(origin or kind, "Part")
    if not args or name == "Part":
        return name
    return f"{name}[{', '.join(map(format_type, args))}]"


def _format_bound(mark: Any) -> str:
    return f"Predicate({mark.func.__name__})" if hasattr(mark, "func") else repr(mark)


@cache
def parse_type(text: str) -> Any:
    """Parse a type: names in `NAMES`, constants, `|`, `[...]` and bounds; the text is data."""
    return _parse_node(ast.parse(text, mode="eval").body)


def _parse_node(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return NAMES[name]
        case ast.Tuple(parts):
            return tuple(map(_parse_node, parts))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return -value  # type: ignore[operator]
        case ast.BinOp(left, ast.BitOr(), right):
            return _parse_node(left) | _parse_node(right)
        case ast.Subscript(generic, inner):
            return _parse_node(generic)[_parse_node(inner)]
        case ast.Call(ast.Name(name), arguments, keyword_nodes) if name in BOUNDS:
            values = [_parse_node(argument) for argument in arguments]
            keywords = {node.arg: _parse_node(node.value) for node in keyword_nodes if node.arg}
            return NAMES[name](*values, **keywords)
    raise ValueError(f"{ast.unparse(node)} is no type")

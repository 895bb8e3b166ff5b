"""Arguments of classes: collected from constructors, documented in docstrings, shown by `help`."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from textwrap import wrap
from typing import Any, get_args, get_origin, get_type_hints

WIDTH = 100
SECTION = re.compile(r"(?m)^(?:Args|Attributes):\n((?:    .*\n|\n)*)")
ARGUMENT = re.compile(r"(?m)^ {4}(\w+).*?: (.*(?:\n {5,}.*)*)")
ARGS = re.compile(r"(?m)^Args:\n(?:    .*\n|\n(?=    ))*")
NEXT = re.compile(r"(?m)^(?:Shapes|Attributes|Raises|Paper|Source|Differences from the \w+):")
UNIONS = (typing.Union, types.UnionType)
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
BOUNDS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


class Documentation:
    """The docstring of a class; where it is read, its `Args:` list all arguments.

    Those of classes above, to which the constructor passes options on, are among them; each has
    its type, meaning and default.

    Attributes:
        text: The docstring as it is written.
    """

    def __init__(self, text: str) -> None:
        self.text = inspect.cleandoc(text)

    def __get__(self, instance: object, owner: type) -> str:
        return _with_arguments(owner, self.text)


def docstring(documented: Any) -> str:
    """The docstring of an object as it is written."""
    written = vars(documented).get("__doc__") if isinstance(documented, type) else None
    if isinstance(written, Documentation):
        return written.text
    return inspect.getdoc(documented) or ""


def meanings(text: str) -> dict[str, str]:
    """What a docstring says of each argument or attribute, by name."""
    section = SECTION.search(f"{text}\n")
    arguments = ARGUMENT.findall(section[1]) if section else ()
    return {name: " ".join(said.split()) for name, said in arguments}


def constructors(owner: type) -> Iterator[tuple[Callable[..., None], list[str]]]:
    """Constructors whose arguments a class takes, with these arguments' names.

    They are the first one, and those that it passes options on to: all of theirs, or those that
    its `Unpack` of a TypedDict names.
    """
    passed: set[str] | None = None
    for above in owner.__mro__:
        function = vars(above).get("__init__")
        if above is object or not inspect.isfunction(function):
            continue
        named = named_arguments(function)
        yield function, [name for name in named if passed is None or name in passed]
        if not passes_options_on(function):
            break
        passed = _passed_on(type_hints(function))


def passes_options_on(function: Callable[..., Any]) -> bool:
    """Whether a function takes options that it does not name."""
    kinds = [argument.kind for argument in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a function; none for one of a library that only type checkers can read."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}


def named_arguments(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Arguments of a function by name, without `self` and those of any name."""
    return {
        name: argument
        for name, argument in inspect.signature(function).parameters.items()
        if name != "self" and not name.startswith("_") and argument.kind not in VARIADIC
    }


def _with_arguments(owner: type, text: str) -> str:
    """A docstring whose `Args:` are those of all constructors."""
    said: dict[str, str] = {}
    for above in reversed(owner.__mro__):
        said |= meanings(docstring(above)) if above is not object else {}
    lines: dict[str, list[str]] = {}
    for function, names in constructors(owner):
        hints = type_hints(function)
        arguments = named_arguments(function)
        for name in (name for name in names if name not in lines):
            lines[name] = _argument(arguments[name], hints.get(name, Any), said.get(name, ""))
    if not lines:
        return text
    section = "\n".join(["Args:", *(line for each in lines.values() for line in each), ""])
    before, has_section, after = _split(text)
    return f"{before}{section}{after}".rstrip() if has_section else f"{text}\n\n{section}".rstrip()


def _passed_on(hints: dict[str, Any]) -> set[str] | None:
    """Names in the TypedDict of a function's options; None without one."""
    unpacked = [hint for hint in hints.values() if get_origin(hint) is typing.Unpack]
    return set(get_type_hints(get_args(unpacked[0])[0])) if unpacked else None


def _split(text: str) -> tuple[str, bool, str]:
    """A docstring before and after the place of its `Args:`; False if that is its end."""
    text = f"{text}\n"
    written = ARGS.search(text)
    if written:
        return text[: written.start()], True, text[written.end() :]
    following = NEXT.search(text)
    if following:
        return text[: following.start()], True, f"\n{text[following.start() :]}"
    return text, False, ""


def _argument(argument: inspect.Parameter, hint: Any, meaning: str) -> list[str]:
    """Lines of an argument: `dim (int, at least 1): Width of the embeddings. (default: 16)`."""
    parts = [describe(hint), *_bounds(hint)]
    says = f"{argument.name} ({', '.join(parts)}): {meaning}"
    if argument.default is not argument.empty:
        says = f"{says} (default:\N{NO-BREAK SPACE}{_default(argument.default)})"
    lines = wrap(says, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def describe(hint: Any) -> str:
    """A type in short: `int`, `'linear' | 'exact'`, `Lorentz or a maker of it`."""
    origin = get_origin(hint)
    args = get_args(hint)
    if origin is typing.Annotated:
        return describe(args[0])
    if origin in UNIONS:
        return " | ".join(dict.fromkeys(map(describe, args)))
    if origin is typing.Literal:
        return " | ".join(map(repr, args))
    if origin is not None and issubclass(origin, Callable):  # type: ignore[arg-type]
        return f"callable that makes {describe(args[1])}" if args else "callable"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(describe, args))}]"
    if hint is type(None) or hint is None:
        return "None"
    return "any" if hint is Any else getattr(hint, "__name__", str(hint))


def _bounds(hint: Any) -> list[str]:
    marks = get_args(hint)[1:] if get_origin(hint) is typing.Annotated else ()
    bounds = [
        f"{BOUNDS[name]} {getattr(mark, name)}"
        for mark in marks
        for name in BOUNDS
        if getattr(mark, name, None) is not None
    ]
    for inner in get_args(hint) if get_origin(hint) in (*UNIONS, typing.Annotated) else ():
        bounds += _bounds(inner)
    return bounds


def _default(value: Any) -> str:
    if isinstance(value, partial):
        options = [f"{name}={given!r}" for name, given in value.keywords.items()]
        return f"{_default(value.func)}({', '.join(options)})"
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)

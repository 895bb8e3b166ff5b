"""Arguments of classes: collected from constructors and described in docstrings."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from textwrap import wrap
from typing import Any, get_args, get_origin, get_type_hints

WIDTH = 100  # width of the lines of arguments

SECTION = re.compile(r"(?m)^(?:Args|Attributes):\n((?:    .*\n|\n)*)")
"""The lines of arguments or attributes in a docstring."""

ARGUMENT = re.compile(r"(?m)^ {4}(\w+).*?: (.*(?:\n {5,}.*)*)")
"""Name and meaning of an argument."""

ARGS = re.compile(r"(?m)^Args:\n(?:    .*\n|\n(?=    ))*")
"""The whole section of arguments."""

NEXT = re.compile(r"(?m)^(?:Shapes|Attributes|Raises|Paper|Source|Differences from the \w+):")
"""The heading of a section that follows the arguments."""

UNIONS = (typing.Union, types.UnionType)
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
BOUNDS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


class Documentation:
    """The docstring of a class; its `Args:` section lists all arguments when `help` shows it.

    Arguments of base classes are included if the constructor passes options on to these classes.
    Each line has an argument's type, meaning and default.

    Attributes:
        text: The docstring in the source.
    """

    def __init__(self, text: str) -> None:
        self.text = inspect.cleandoc(text)

    def __get__(self, instance: object, owner: type) -> str:
        return _describe_arguments(owner, self.text)


def docstring(documented: Any) -> str:
    """The docstring of an object in the source."""
    if isinstance(documented, type):
        documentation = vars(documented).get("__doc__")
        if isinstance(documentation, Documentation):
            return documentation.text
    return inspect.getdoc(documented) or ""


def meanings(text: str) -> dict[str, str]:
    """Descriptions of arguments or attributes in a docstring, by name."""
    section = SECTION.search(f"{text}\n")
    if section is None:
        return {}
    lines = ARGUMENT.findall(section[1])
    return {name: " ".join(meaning.split()) for name, meaning in lines}


def constructors(owner: type) -> Iterator[tuple[Callable[..., None], list[str]]]:
    """Constructors whose arguments a class accepts, with the names of these arguments.

    The first constructor is the class's own. If it passes options on to a base class, the base
    class's constructor follows, with all its arguments or with those of an `Unpack`ed TypedDict.
    """
    options: set[str] | None = None
    for base in owner.__mro__:
        function = vars(base).get("__init__")
        if base is object or not inspect.isfunction(function):
            continue
        names = list(get_parameters(function))
        if options is not None:
            names = [name for name in names if name in options]
        yield function, names
        if not passes_options_on(function):
            break
        options = _unpacked_names(type_hints(function))


def passes_options_on(function: Callable[..., Any]) -> bool:
    """Whether a function has a `**options` argument."""
    parameters = inspect.signature(function).parameters.values()
    kinds = [parameter.kind for parameter in parameters]
    return inspect.Parameter.VAR_KEYWORD in kinds


def type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of a function; empty if only type checkers can resolve them."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}


def get_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Arguments of a function by name, without `self`, private and variadic ones."""
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self" and not name.startswith("_") and parameter.kind not in VARIADIC
    }


def _describe_arguments(owner: type, text: str) -> str:
    """Replace the `Args:` section of a docstring by the arguments of all constructors."""
    meaning_by_name: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base is not object:
            meaning_by_name |= meanings(docstring(base))
    lines_by_name: dict[str, list[str]] = {}
    for function, names in constructors(owner):
        hints = type_hints(function)
        parameters = get_parameters(function)
        for name in names:
            if name not in lines_by_name:
                hint = hints.get(name, Any)
                meaning = meaning_by_name.get(name, "")
                lines_by_name[name] = _argument(parameters[name], hint, meaning)
    if not lines_by_name:
        return text
    lines = [line for lines in lines_by_name.values() for line in lines]
    section = "\n".join(["Args:", *lines, ""])
    head, tail = _split(text)
    return f"{head}{section}{tail}".rstrip()


def _unpacked_names(hints: dict[str, Any]) -> set[str] | None:
    """Names in the `Unpack`ed TypedDict among the annotations of a function; None without one."""
    for hint in hints.values():
        if get_origin(hint) is typing.Unpack:
            return set(get_type_hints(get_args(hint)[0]))
    return None


def _split(text: str) -> tuple[str, str]:
    """The parts of a docstring before and after its `Args:` section."""
    text = f"{text}\n"
    section = ARGS.search(text)
    if section:
        return text[: section.start()], text[section.end() :]
    next_section = NEXT.search(text)
    if next_section:
        start = next_section.start()
        return text[:start], f"\n{text[start:]}"
    return f"{text}\n", ""


def _argument(parameter: inspect.Parameter, hint: Any, meaning: str) -> list[str]:
    """Lines of an argument: `dim (int, at least 1): Width of the embeddings. (default: 16)`."""
    kind = ", ".join([describe(hint), *_bounds(hint)])
    text = f"{parameter.name} ({kind}): {meaning}"
    if parameter.default is not parameter.empty:
        text = f"{text} (default:\N{NO-BREAK SPACE}{_default(parameter.default)})"
    lines = wrap(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def describe(hint: Any) -> str:
    """Describe a type briefly: `int`, `'linear' | 'exact'`, `callable that makes Lorentz`."""
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
    if hint is Any:
        return "any"
    return getattr(hint, "__name__", str(hint))


def _bounds(hint: Any) -> list[str]:
    origin = get_origin(hint)
    args = get_args(hint)
    bounds = list[str]()
    if origin is typing.Annotated:
        for mark in args[1:]:
            limits = {name: getattr(mark, name, None) for name in BOUNDS}
            bounds += [f"{BOUNDS[name]} {x}" for name, x in limits.items() if x is not None]
    if origin in (*UNIONS, typing.Annotated):
        for argument in args:
            bounds += _bounds(argument)
    return bounds


def _default(value: Any) -> str:
    if isinstance(value, partial):
        options = [f"{name}={option!r}" for name, option in value.keywords.items()]
        return f"{_default(value.func)}({', '.join(options)})"
    if callable(value):
        return getattr(value, "__name__", repr(value))
    return repr(value)

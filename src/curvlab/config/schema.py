"""Options of a class, read from its signature and docstring without importing it.

A configuration names a class by `_target_`; what may stand beside it is said by the class alone.
griffe parses the source, so that nothing waits for torch, and pydantic checks values by the
annotations.
"""

import ast
import builtins
import collections.abc
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, get_args, get_origin

import annotated_types
import griffe

from curvlab import options as aliases
from curvlab.kinds import UNIONS, Part, in_words, valid
from curvlab.options import FROM_DATA, INCIDENTAL, PASSED

LIBRARIES = ("torch", "torch_geometric", "lightning", "optuna", "geoopt", "hydra")
"""Packages whose signatures are long: a configuration has of them what its YAML names."""

MISSING = object()
"""A default that is no literal, such as a class: the constructor has it."""


@dataclass(frozen=True)
class Option:
    """One argument of a constructor.

    Attributes:
        name: of the argument.
        annotation: its type, as typing has it.
        default: a literal, or `MISSING`.
        required: whether there is no default, so that code passes it.
        doc: its line in the docstring; empty without one.
        spaces: of a `SpaceMaker`, the classes that it may make, dotted.
        marks: `INCIDENTAL`, `FROM_DATA`, `PASSED`.
    """

    name: str
    annotation: Any
    default: Any
    required: bool
    doc: str
    spaces: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def settable(self) -> bool:
        """Whether a configuration may give it."""
        passed = FROM_DATA in self.marks or PASSED in self.marks
        return not (self.required or self.spaces or passed)

    @property
    def incidental(self) -> bool:
        """Whether it decides no number."""
        return INCIDENTAL in self.marks

    @property
    def says(self) -> str:
        """Its values in words: `a whole number of at least 1`."""
        return in_words(self.annotation)

    def problem(self, value: Any) -> str | None:
        """What a value must be instead, in words; None if it may be."""
        alike = (value, tuple(value)) if isinstance(value, list) else (value,)
        return None if any(valid(self.annotation, v) for v in alike) else self.says


@cache
def options_of(target: str) -> Mapping[str, Option]:
    """Arguments of a class or function by name, in order; empty for what is not found.

    Of a constructor that takes `**options`, those of the class above it as well.

    Args:
        target: dotted, such as `curvlab.models.fpst.FPST`.
    """
    found = locate(target)
    if isinstance(found, griffe.Function):
        return _arguments(found, found)
    if not isinstance(found, griffe.Class):
        return {}
    merged: dict[str, Option] = {}
    for parent in mro(target):
        made = parent.members.get("__init__")
        if isinstance(made, griffe.Function):
            merged = merged | {
                name: option
                for name, option in _arguments(made, parent).items()
                if name not in merged
            }
            if not any(p.kind is griffe.ParameterKind.var_keyword for p in made.parameters):
                return merged
        elif _is_dataclass(parent):
            return merged | _fields(parent.path)
    return merged


@cache
def takes_others(target: str) -> bool:
    """Whether a constructor passes on options that are in no signature here, as torch's are."""
    made = [parent.members["__init__"] for parent in mro(target) if "__init__" in parent.members]
    return bool(made) and all(
        isinstance(m, griffe.Function)
        and any(p.kind is griffe.ParameterKind.var_keyword for p in m.parameters)
        for m in made
    )


def completed(target: str) -> Mapping[str, Option]:
    """The options that a configuration of a class has, whether its YAML names them or not."""
    if target.partition(".")[0] in LIBRARIES:
        return {}
    return {name: option for name, option in options_of(target).items() if option.settable}


def is_subclass(target: str, base: str) -> bool:
    """Whether a class is another one or below it, both dotted."""
    sought = locate(base)
    return sought is not None and any(c.path == sought.path for c in mro(target))


def spaces_of(target: str) -> tuple[str, ...]:
    """Classes of spaces, dotted, that a model can be built with: those of its `SpaceMaker`.

    A model without one embeds into flat space.
    """
    makers = (option.spaces for option in options_of(target).values())
    return next((spaces for spaces in makers if spaces), ("curvlab.manifolds.Euclidean",))


def attribute(target: str, name: str, default: Any = None) -> Any:
    """The literal that a class, or the next one above it, gives an attribute."""
    for parent in mro(target):
        member = parent.members.get(name)
        if isinstance(member, griffe.Attribute) and member.value is not None:
            value = _literal(member.value)
            if value is not MISSING:  # else an instance's, set by its constructor
                return value
    return default


def summary(target: str) -> str:
    """First line of a docstring."""
    found = locate(target)
    return found.docstring.value.split("\n")[0] if found is not None and found.docstring else ""


@cache
def mro(target: str) -> tuple[griffe.Class, ...]:
    """A class and those above it whose sources are found, depth first."""
    found = locate(target)
    if not isinstance(found, griffe.Class):
        return ()
    above = (base for expr in found.bases for base in mro(_path(expr)))
    return (found, *dict.fromkeys(above))


@cache
def locate(path: str) -> griffe.Object | None:
    """A class, function or attribute by its dotted path, through the imports of packages."""
    module_path, _, name = path.rpartition(".")
    module = _module(module_path) if module_path else None
    if module is None:
        return None
    member = module.members.get(name)
    if isinstance(member, griffe.Alias):
        return locate(member.target_path)
    if member is None:  # by `from .gcn_conv import *`
        stars = (
            m.target_path
            for m in module.members.values()
            if isinstance(m, griffe.Alias) and m.wildcard
        )
        return next((found for star in stars if (found := locate(f"{star}.{name}"))), None)
    return member


@cache
def _module(path: str) -> griffe.Module | None:
    """A module's source, parsed; its packages are not imported."""
    search, spec = None, None
    parts = path.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), search)
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or ())
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    file = Path(spec.origin)
    return griffe.visit(path, filepath=file, code=file.read_text(encoding="utf-8"))


def _arguments(function: griffe.Function, documented: griffe.Object) -> dict[str, Option]:
    docs = _docs(documented) | _docs(function)
    variadic = (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword)
    return {
        p.name: _option(p.name, p.annotation, p.default, docs.get(p.name, ""))
        for p in function.parameters
        if p.name != "self" and p.kind not in variadic and not p.name.startswith("_")
    }


def _fields(target: str) -> dict[str, Option]:
    """Options of a dataclass: its annotated attributes, those of its bases first."""
    found: dict[str, Option] = {}
    for parent in reversed(mro(target)):
        docs = _docs(parent)
        for name, member in parent.members.items():
            if name.startswith("_") or not isinstance(member, griffe.Attribute):
                continue
            if member.annotation is not None:
                doc = docs.get(name) or (found[name].doc if name in found else "")
                found[name] = _option(name, member.annotation, member.value, doc)
    return found


def _option(name: str, annotation: Any, default: Any, doc: str) -> Option:
    evaluated = _evaluated(annotation)
    return Option(
        name,
        evaluated,
        MISSING if default is None else _literal(default),
        default is None,
        doc,
        _spaces(annotation),
        tuple(m for m in (INCIDENTAL, FROM_DATA, PASSED) if m in _metadata(evaluated)),
    )


def _docs(documented: griffe.Object) -> dict[str, str]:
    if documented.docstring is None:
        return {}
    parser = {"returns_named_value": False, "warn_unknown_params": False, "warnings": False}
    sections = griffe.Docstring(documented.docstring.value).parse("google", **parser)
    kinds = (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes)
    return {
        p.name: " ".join(p.description.split())
        for section in sections
        if section.kind in kinds
        for p in section.value
    }


def _literal(value: Any) -> Any:
    try:
        return ast.literal_eval(str(value))
    except (ValueError, SyntaxError):
        return MISSING


def _path(expression: Any) -> str:
    if isinstance(expression, griffe.ExprSubscript):
        expression = expression.left
    return expression.canonical_path if isinstance(expression, griffe.Expr) else str(expression)


def _is_dataclass(found: griffe.Class) -> bool:
    return any("dataclass" in str(decorator.value) for decorator in found.decorators)


def _spaces(annotation: Any) -> tuple[str, ...]:
    """Dotted classes X, Y of `SpaceMaker[X | Y]`."""
    if not (isinstance(annotation, griffe.ExprSubscript) and str(annotation.left) == "SpaceMaker"):
        return ()
    names = annotation.slice
    parts = names.iterate(flat=True) if isinstance(names, griffe.Expr) else ()
    return tuple(p.canonical_path for p in parts if isinstance(p, griffe.ExprName))


class _Names(dict[str, Any]):
    """What names of an annotation mean: typing's, the aliases of `curvlab.options`, else a part."""

    def __init__(self, module: griffe.Module | None) -> None:
        super().__init__(vars(builtins))
        self.module = module
        for source in (typing, collections.abc, annotated_types, aliases):
            self.update({k: v for k, v in vars(source).items() if not k.startswith("_")})

    def __missing__(self, name: str) -> Any:
        member = self.module.members.get(name) if self.module else None
        if isinstance(member, griffe.Alias):
            member = locate(member.target_path)
        if isinstance(member, griffe.Attribute) and member.value is not None:
            return _evaluated(member.value)
        return Part


def _evaluated(annotation: Any) -> Any:
    """The type that an annotation stands for."""
    if annotation is None:
        return Any
    parts = annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else ()
    owners = (p.parent for p in parts if isinstance(p, griffe.ExprName))
    module = next((o.module for o in owners if isinstance(o, griffe.Object)), None)
    try:
        return _without_callables(eval(str(annotation), {}, _Names(module)))
    except (TypeError, SyntaxError, NameError, AttributeError):
        return Part


def _without_callables(kind: Any) -> Any:
    """A type in which what is called, and what no value of a file is, are parts."""
    if get_origin(kind) is collections.abc.Callable or kind is collections.abc.Callable:
        return Part
    if get_origin(kind) in UNIONS:
        return typing.Union[tuple(_without_callables(arg) for arg in get_args(kind))]  # noqa: UP007
    return kind


def _metadata(kind: Any) -> tuple[Any, ...]:
    return get_args(kind)[1:] if get_origin(kind) is typing.Annotated else ()

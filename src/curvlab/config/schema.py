"""Signatures of configurable classes: types, bounds, defaults, documentation.

`signatures.json` has the signatures of this package's classes, so that a command line is checked
before torch is imported. Other classes are imported. A result is identified by what
differs from the defaults, so that a changed default requires a new `revision` of its class. After
a change:

    python -m curvlab.config.schema

It also writes `curvlab/models/__init__.pyi`, the names of all models.
"""

import dataclasses
import inspect
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from pydoc import locate
from typing import Annotated, Any, get_args

from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from pydantic.dataclasses import dataclass

from curvlab.checked import constraints, describe_type, valid
from curvlab.config.folder import CONFIGS
from curvlab.config.trust import SIGNATURES as FILE
from curvlab.config.trust import is_known
from curvlab.config.type_texts import format_type, parse_type
from curvlab.documentation import (
    constructors,
    docstring,
    get_parameters,
    meanings,
    passes_options_on,
    type_hints,
)
from curvlab.errors import UsageError
from curvlab.options import FROM_DATA, INCIDENTAL, PASSED, SPACE, Configured

LIBRARIES = (
    "torch", "torch_geometric", "lightning", "optuna", "geoopt", "hydra", "hydra_plugins",
)  # fmt: skip
"""Packages with long signatures: their classes are not completed with all options."""

GROUPS = {
    "": "curvlab.run.sections.RunOptions",
    "dataset": "curvlab.run.sections.DatasetOptions",
    "paths": "curvlab.run.sections.PathsOptions",
    "search": "curvlab.run.sections.SearchOptions",
    "study": "curvlab.run.sections.StudyOptions",
}
"""Classes of the parts of a configuration that have no `_target_`, since they are not built."""

PACKAGE = Path(__file__).parents[1].name
MODEL_STUB = Path(__file__).parents[1] / "models" / "__init__.pyi"

MISSING = object()  # in place of a default that is no literal, which the constructor has


def _type(kind: Any) -> Any:
    """A type, parsed if it is a text."""
    return parse_type(kind) if isinstance(kind, str) else kind


@dataclass(frozen=True)
class Option:
    """One argument of a constructor."""

    kind: Annotated[Any, PlainValidator(_type), PlainSerializer(format_type)]
    default: Any = MISSING  # a literal
    required: bool = False  # without a default: code passes it
    doc: str = ""  # its line in the docstring
    spaces: tuple[str, ...] = ()  # of a `SpaceMaker`, the classes that it may make, dotted
    marks: tuple[str, ...] = ()  # `INCIDENTAL`, `FROM_DATA`, `PASSED`

    @property
    def settable(self) -> bool:
        """Whether a configuration may give the option."""
        return not (self.required or self.spaces or {FROM_DATA, PASSED}.intersection(self.marks))

    @property
    def incidental(self) -> bool:
        """Whether the option decides no number."""
        return INCIDENTAL in self.marks

    @property
    def says(self) -> str:
        """Description of the allowed values, such as `a whole number of at least 1`."""
        return describe_type(self.kind)

    def problem(self, value: Any) -> str | None:
        """Describe the allowed values; None if the value is valid."""
        fits = valid(self.kind, value)
        if isinstance(value, list) and not fits:
            fits = valid(self.kind, tuple(value))
        return None if fits else self.says


@dataclass(frozen=True)
class Signature:
    """A class or a function."""

    summary: str = ""  # first line of its docstring
    classes: tuple[str, ...] = ()  # it and those above it, dotted
    # Literals; `takes_options_of` names another class, whose options code passes on.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    passes_on: bool = False  # takes options that are in no signature here, as torch's are
    options: Mapping[str, Option] = field(default_factory=dict)  # with those of classes above


STORED = TypeAdapter(dict[str, Signature])


def class_name(target: str) -> str:
    """Name of a class in identities and results: `FPST`, and in another package `lab.nets.FPST`.

    Names of this package's classes are unique (a test), so that files can move.
    """
    package, _, path = target.partition(".")
    return path.rpartition(".")[2] if package == PACKAGE and path else target


def current_target(target: str) -> str:
    """Today's dotted name of a class of this package, wherever its file was."""
    return _targets_by_name().get(class_name(target), target)


def signature_of(target: str) -> Signature:
    """Signature of a class or function; empty if it is not found, or not trusted (`trust`)."""
    stored = stored_signatures()
    if target in stored:
        return stored[target]
    current = current_target(target)
    if current in stored:
        return stored[current]
    return _signature_of_other(target) if target and is_known(target) else Signature()


def check_importable(key: str, target: str) -> None:
    """Refuse a value of a `_target_` that names no class; classes of `FILE` are not imported.

    Raises:
        UsageError: it cannot be imported.
    """
    if target in stored_signatures() or target == "???":  # a missing value has its own sentence
        return
    if current_target(target) != target:
        raise UsageError(f"{key}={target}: no such class; write {key}={current_target(target)}")
    try:
        located = locate(target) if is_known(target) else None
    except Exception as error:
        raise UsageError(f"{key}={target} cannot be imported: {error}") from error
    if located is None:
        raise UsageError(f"{key}={target} names no class that can be imported")


@cache
def _signature_of_other(target: str) -> Signature:
    try:
        return _inspect(locate(target))
    except Exception:  # building reports a module that cannot be imported
        return Signature()


def options_of(target: str) -> Mapping[str, Option]:
    """Arguments of a class or function by name, in order; empty for what is not found."""
    return signature_of(target).options


def complete_options(target: str) -> Mapping[str, Option]:
    """All options of a class that a configuration can set."""
    if target.partition(".")[0] in LIBRARIES:
        return {}
    return {name: option for name, option in options_of(target).items() if option.settable}


def is_subclass(target: str, base: str) -> bool:
    """Whether a class is `base` or a subclass of it, both by their dotted names."""
    return base in signature_of(target).classes


def spaces_of(target: str) -> tuple[str, ...]:
    """Dotted classes of the spaces of a model; Euclidean space for a model without a choice."""
    makers = (option.spaces for option in options_of(target).values())
    flat = ("curvlab.manifolds.euclidean_space.Euclidean",)
    return next((spaces for spaces in makers if spaces), flat)


def attribute(target: str, name: str, default: Any = None) -> Any:
    """The literal value of an attribute in a class or its nearest base."""
    return signature_of(target).attributes.get(name, default)


@cache
def _targets_by_name() -> dict[str, str]:
    return {class_name(target): target for target in stored_signatures()}


@cache
def stored_signatures() -> dict[str, Signature]:
    """Signatures in `FILE`, by dotted name."""
    return STORED.validate_json(FILE.read_bytes()) if FILE.is_file() else {}


def _inspect(target: Any) -> Signature:
    if not inspect.isclass(target):
        return Signature(_summary(target), options=_arguments(target, target))
    classes = [c for c in target.__mro__ if c is not object]
    options: dict[str, Option] = {}
    passed_on = False
    for function, names in constructors(target):
        found_here = _arguments(function, *classes)
        options = {name: found_here[name] for name in names} | options
        passed_on = passes_options_on(function)
    attributes = {
        name: value
        for above in reversed(classes)
        if above.__module__.partition(".")[0] not in LIBRARIES
        for name, value in vars(above).items()
        if not name.startswith("_") and name not in options and _is_literal(value)
    }
    base = attributes.get("takes_options_of")
    if base:
        passed = _inspect(locate(base)).options
        options |= {
            name: dataclasses.replace(option, marks=(PASSED,))
            for name, option in passed.items()
            if name not in options
        }
    return Signature(
        summary=_summary(target),
        classes=tuple(map(_dotted_name, classes)),
        attributes=attributes,
        passes_on=passed_on,
        options=options,
    )


def _arguments(function: Any, *documented: Any) -> dict[str, Option]:
    docs: dict[str, str] = {}
    for source in (function, *documented):
        docs = meanings(docstring(source)) | docs
    hints = type_hints(function)
    options = {}
    for name, argument in get_parameters(function).items():
        kind = hints.get(name, Any)
        default = argument.default
        for mark in constraints(kind):
            if isinstance(mark, Configured):
                default = mark.default
        marks = tuple(mark for mark in constraints(kind) if isinstance(mark, str))
        spaces: tuple[str, ...] = ()
        if SPACE in marks:  # classes X, Y of `SpaceMaker[X | Y]`
            classes = get_args(get_args(kind)[0])[1]
            spaces = tuple(map(_dotted_name, get_args(classes) or (classes,)))
        options[name] = Option(
            kind=format_type(kind),
            default=default if _is_literal(default) else MISSING,
            required=default is argument.empty,
            doc=docs.get(name, ""),
            spaces=spaces,
            marks=tuple(mark for mark in marks if mark != SPACE),
        )
    return options


def _is_literal(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_literal, value))
    return value is None or type(value) in (bool, int, float, str)


def _summary(documented: Any) -> str:
    return docstring(documented).partition("\n")[0]


def _dotted_name(one: type) -> str:
    return f"{one.__module__}.{one.__qualname__}"


def describe_all(configs: Path = CONFIGS) -> bytes:
    """Signatures, in JSON, of all classes that the configurations of a folder name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in configs.rglob("*.yaml"))
    targets = {*re.findall(r"_target_: ((?!hydra_)[\w.]+)", text), *GROUPS.values()}
    signatures = {target: _inspect(locate(target)) for target in sorted(targets)}
    for name, count in Counter(map(class_name, signatures)).items():
        if count > 1:
            raise UsageError(f"{count} targets are named {name}: an identity needs one name each")
    return STORED.dump_json(signatures, indent=1, exclude_defaults=True)


def model_stub() -> str:
    """The text of `curvlab/models/__init__.pyi`, which names all models and their base classes."""
    package = import_module(f"{PACKAGE}.models")
    modules = [m.name for m in walk_packages(package.__path__, f"{package.__name__}.")]
    base = locate(f"{package.__name__}.encoder.Encoder")
    assert isinstance(base, type)
    names = sorted(
        (module, name)
        for module in modules
        for name, value in vars(import_module(module)).items()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == module
        if not name.startswith("_")
    )
    return "\n".join(
        [
            '"""Names of the models; written by `python -m curvlab.config.schema`."""',
            "",
            *(f"from {module} import {name} as {name}" for module, name in names),
            "",
            "__all__ = [",
            *(f'    "{name}",' for name in sorted(name for _, name in names)),
            "]",
            "",
        ]
    )


def moved_defaults(old: Mapping[str, Signature], new: Mapping[str, Signature]) -> list[str]:
    """Defaults that changed without a new revision, as `FPST.dim: 16 -> 32`."""
    moved = []
    old = {class_name(target): signature for target, signature in old.items()}
    new = {class_name(target): signature for target, signature in new.items()}
    for target in old.keys() & new.keys():
        old_revision = old[target].attributes.get("revision", 1)
        new_revision = new[target].attributes.get("revision", 1)
        if old_revision != new_revision:
            continue
        old_options = old[target].options
        new_options = new[target].options
        for name in old_options.keys() & new_options.keys():
            old_default = old_options[name].default
            new_default = new_options[name].default
            if old_default != new_default and not new_options[name].incidental:
                moved.append(f"{target}.{name}: {old_default} -> {new_default}")
    return sorted(moved)


def main() -> int:
    """Write the signatures and the stub, unless a default moved without a revision."""
    new = describe_all()
    wrong = moved_defaults(stored_signatures(), STORED.validate_json(new))
    if wrong:
        print("\n".join(f"{line}: raise the class's revision" for line in wrong), file=sys.stderr)
        return 2
    inner = r"\[[^\[\]{}]*\]|{[^{}]*}"
    lines = re.sub(inner, lambda match: " ".join(match[0].split()), new.decode())
    FILE.write_text(f"{lines}\n", encoding="utf-8")
    MODEL_STUB.write_text(model_stub(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

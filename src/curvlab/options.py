"""Annotations of constructor arguments: bounds, choices and marks of options."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Interval, Lt, Predicate


def is_inside(path: str) -> bool:
    """A path below its folder, without .. and no absolute one."""
    outside = {"", "..", "~"}.intersection(path.split("/"))
    return not outside and "\\" not in path


def is_place(path: str) -> bool:
    """A folder's path, not an empty one."""
    return bool(path.strip())


def is_project(name: str) -> bool:
    """A name of at most 128 characters, without any of / # ? % : in it."""
    return 0 < len(name) <= 128 and not set(name) & set("/\\#?%:")


def is_interval(ends: Sequence[float]) -> bool:
    """A list of two numbers, the lower one first."""
    return len(ends) == 2 and ends[0] < ends[1]


def has_both_sides(values: Mapping[str, object]) -> bool:
    """Keys head and tail, each a whole number of at least 1."""
    return set(values) == {"head", "tail"}


def has_both_tables(values: Mapping[str, object]) -> bool:
    """Keys entities and relations, each a number of at least 0."""
    return set(values) == {"entities", "relations"}


RelativePath = Annotated[str, Predicate(is_inside)]
Place = Annotated[str, Predicate(is_place)]
Project = Annotated[str, Predicate(is_project)]
PositiveInt = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
NonNegativeFloat = Annotated[float, Ge(0)]
NegativeFloat = Annotated[float, Lt(0)]
UniformInterval = Annotated[Sequence[float], Predicate(is_interval)]
SideCounts = Annotated[Mapping[str, PositiveInt], Predicate(has_both_sides)]
TableWeights = Annotated[Mapping[str, NonNegativeFloat], Predicate(has_both_tables)]
EmbeddingInit = PositiveFloat | UniformInterval | Literal["xavier_normal"] | None
Dropout = Annotated[float, Interval(ge=0, lt=1)]
Share = Annotated[float, Interval(ge=0, le=1)]
Fraction = Annotated[float, Interval(gt=0, lt=1)]
Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]  # numpy's
Activation = Literal["relu", "elu", "tanh", "sigmoid"]
FilterPair = Literal[
    "mixed_low_pass", "mixed_high_pass", "mixed_band_pass", "mixed_rejection_pass",
    "low_high_pass", "band_rejection_pass",
]  # fmt: skip

T = TypeVar("T")

INCIDENTAL = "incidental"
"""Mark of an option that changes no number: threads, progress, names of files."""

USER_FILE = "user_file"
"""Mark of an option that names a file or folder of the user's."""

DATASET_FILES = "dataset_files"
"""Mark of an option that lists the files of a data set."""

FROM_DATA = "from_data"
"""Mark of an argument that a run's data have by the same name."""

PASSED = "passed"
"""Mark of an argument with a default that only code sets."""

SPACE = "space"
"""Mark of an argument that makes a space."""


@dataclass(frozen=True)
class Configured:
    """Marks an argument whose default in configurations differs from that of the constructor."""

    default: Any


Learnable = Annotated[bool, Configured(True)]
"""Whether a curvature is a parameter; true by default in configurations."""

Incidental = Annotated[T, INCIDENTAL]

UserFile = Annotated[T, INCIDENTAL, USER_FILE]
"""Path of a user's file or folder: the content identifies a run, not the name."""

DatasetFiles = Annotated[T, INCIDENTAL, DATASET_FILES]
"""Files of a data set: they identify a run unless they are the files of the shipped data set."""

FromData = Annotated[T, FROM_DATA]
Passed = Annotated[T, PASSED]

SpaceMaker = Annotated[Callable[..., T], SPACE]
"""A callable that makes spaces of class T: the class, or a space to copy.

A run passes the class and the options that `manifold=` chooses.
"""

"""Constructors refuse what their annotations do not take.

Nothing here imports torch.
"""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import signature
from numbers import Number
from typing import Any, ClassVar, ParamSpec, TypeVar, get_type_hints

from curvlab.errors import UsageError
from curvlab.kinds import in_words, is_bounded, valid

P = ParamSpec("P")
R = TypeVar("R")

Check = Callable[[str, Any, Mapping[str, Any]], None]
"""Refuses arguments, by the name of the class, what has the annotations, and the arguments."""


def check_values(owner: str, annotated: Any, given: Mapping[str, Any]) -> None:
    """Refuse values that are out of bounds or no choice.

    Raises:
        UsageError: with what fits.
    """
    for name, kind in _bounded(annotated).items():
        if name in given and not valid(kind, _plain(given[name])):
            says = in_words(kind).replace("null", "None")
            raise UsageError(f"{owner}: {name}={given[name]!r} must be {says}")


class Checked:
    """Base of classes whose constructors refuse values that are out of bounds or no choice.

    The annotations say which fit: `dim: PositiveInt`, `attention: Literal["linear", "exact"]`.
    Constructors of subclasses check theirs. Fields of dataclasses are checked like arguments.

    Raises:
        UsageError: by the constructor, with what fits.
    """

    _checks: ClassVar[tuple[Check, ...]] = (check_values,)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__, cls._checks)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        """Check a dataclass, whose constructor is made after the class."""
        check_values(type(self).__name__, type(self), vars(self))


def checked(made: Callable[P, R], checks: tuple[Check, ...] = (check_values,)) -> Callable[P, R]:
    """Let a constructor, or a function that makes something, check its arguments."""
    named = signature(made)

    @wraps(made)
    def checking(*args: P.args, **options: P.kwargs) -> R:
        owner = type(args[0]).__name__ if made.__name__ == "__init__" else made.__name__
        try:
            given = named.bind_partial(*args, **options).arguments
        except TypeError:  # which the call below says better
            given = {}
        for check in checks:
            check(owner, made, given)
        return made(*args, **options)

    return checking


@cache
def _bounded(annotated: Any) -> dict[str, Any]:
    """Annotations with bounds or choices; looked up late, when all names are there."""
    hints = get_type_hints(annotated, include_extras=True)
    return {name: hint for name, hint in hints.items() if is_bounded(hint)}


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value

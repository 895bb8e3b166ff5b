"""Layers and models refuse, when they are built, spaces that their constructors do not take."""

from collections.abc import Mapping
from functools import cache
from inspect import isabstract
from typing import Any, get_args, get_type_hints

from curvlab import manifolds
from curvlab.checked import Checked, check_values
from curvlab.errors import UsageError
from curvlab.manifolds import EmbeddingSpace

Made = tuple[type[EmbeddingSpace], ...]


def check_spaces(owner: str, annotated: Any, given: Mapping[str, Any]) -> None:
    """Refuse spaces, and makers of spaces, that do not fit an annotation.

    Raises:
        UsageError: with what fits.
    """
    for name, kinds in _fitting(annotated).items():
        found = _class_of(given.get(name))
        if found is not None and not issubclass(found, kinds):
            raise UsageError(
                f"{owner} cannot be built with {name}={found.__name__}: it takes "
                f"{', '.join(_choices(kinds))}"
            )


class OnSpaces(Checked):
    """Base of classes whose constructors check the spaces and makers of spaces, too.

    The annotations say which fit: `space: Lorentz`, `manifold: SpaceMaker[Stereographic]`.

    Raises:
        UsageError: by the constructor, with what fits.
    """

    _checks = (check_values, check_spaces)


@cache
def _fitting(annotated: Any) -> dict[str, Made]:
    hints = get_type_hints(annotated)
    return {name: found for name, hint in hints.items() if (found := _spaces(hint))}


def _class_of(value: Any) -> type[EmbeddingSpace] | None:
    """The class of a space, or of what a maker of spaces makes if that can be seen."""
    maker = getattr(value, "func", value)  # of a partial
    found = maker if isinstance(maker, type) else type(maker)
    return found if issubclass(found, EmbeddingSpace) else None


def _spaces(hint: Any) -> Made:
    """The classes of spaces in an annotation."""
    if isinstance(hint, type) and issubclass(hint, EmbeddingSpace):
        return (hint,)
    return tuple(kind for arg in get_args(hint) for kind in _spaces(arg))


def _choices(kinds: Made) -> list[str]:
    """Names of the spaces of some classes that can be made."""
    every = [getattr(manifolds, name) for name in manifolds.__all__]
    return [
        made.__name__
        for made in every
        if isinstance(made, type) and issubclass(made, kinds) and not isabstract(made)
    ]

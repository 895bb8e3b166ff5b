"""Layers and models refuse, when they are built, what their constructors do not take."""

from collections.abc import Callable
from functools import wraps
from inspect import isabstract, signature
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from torch import nn

from curvlab import manifolds
from curvlab.errors import UsageError
from curvlab.kinds import in_words, is_bounded, valid
from curvlab.manifolds import EmbeddingSpace

M = TypeVar("M", bound=nn.Module)
Made = tuple[type[EmbeddingSpace], ...]


def on_spaces(layer: type[M]) -> type[M]:
    """Let a class's constructor check the values, spaces, and makers of spaces that it is given.

    The annotations say which fit: `dim: PositiveInt`, `space: Lorentz`,
    `manifold: SpaceMaker[Stereographic]`.

    Raises:
        UsageError: by the constructor, with what fits.
    """
    layer.__init__ = _checked(layer.__name__, layer.__init__)  # type: ignore[method-assign]
    return layer


def _checked(owner: str, made: Callable[..., None]) -> Callable[..., None]:
    named, hints = signature(made), get_type_hints(made, include_extras=True)
    bounded = {name: hint for name, hint in hints.items() if is_bounded(hint)}
    fitting = {name: found for name, hint in hints.items() if (found := _spaces(hint))}

    @wraps(made)
    def checked(*args: Any, **options: Any) -> None:
        try:
            given = named.bind_partial(*args, **options).arguments
        except TypeError:  # which the call below says better
            given = {}
        for name in given.keys() & bounded:
            value = given[name].item() if isinstance(given[name], np.generic) else given[name]
            if not valid(bounded[name], value):
                kind = in_words(bounded[name]).replace("null", "None")
                raise UsageError(f"{type(args[0]).__name__}: {name}={value!r} must be {kind}")
        for name, kinds in fitting.items():
            found = _class_of(given.get(name))
            if found is not None and not issubclass(found, kinds):
                raise UsageError(
                    f"{owner} cannot be built with {name}={found.__name__}: it takes "
                    f"{', '.join(_choices(kinds))}"
                )
        made(*args, **options)

    return checked


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

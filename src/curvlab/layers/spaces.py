"""Layers and models take manifolds as classes, instances or partials, and refuse other kinds."""

from collections.abc import Callable
from functools import cache
from inspect import isabstract, signature
from typing import Any, Self, get_args, get_origin, get_type_hints

from curvlab import manifolds
from curvlab.checked import Checked, check_values
from curvlab.errors import UsageError
from curvlab.manifolds import Manifold


def check_manifolds(owner: str, annotated: Any, given: dict[str, Any]) -> None:
    """Refuse manifolds that fit no annotation; make an instance where it asks for one."""
    for name, (kinds, is_maker) in _manifolds(annotated).items():
        value = given.get(name)
        kind = manifold_class(value)
        unknown = callable(value) and not issubclass(kind, Manifold)  # a function
        if value is None or (unknown and is_maker):
            continue
        if not issubclass(kind, kinds):
            shown = kind.__name__ if issubclass(kind, Manifold) else repr(value)
            raise UsageError(f"{owner}: {name}={shown} must be {' or '.join(_choices(kinds))}")
        if not is_maker and not isinstance(value, Manifold):
            given[name] = value()


class TakesManifold(Checked):
    """Base of layers and models, whose constructors take `manifold` as a class or an instance.

    The annotation says which fit: `manifold: Lorentz` is a layer's, which gets an instance,
    `manifold: SpaceMaker[Stereographic]` a model's, which makes its spaces itself.
    """

    _checks = (check_values, check_manifolds)

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Answer other libraries' names of the curvature."""
        for name in {"c", "k", "curvature"} & options.keys():
            if name not in signature(cls.__init__).parameters:
                raise UsageError(
                    f"{cls.__name__} takes no {name}: give the signed curvature kappa to its "
                    "manifold, such as manifold=PoincareBall(kappa=-1.0)"
                )
        return super().__new__(cls)


@cache
def _manifolds(annotated: Any) -> dict[str, tuple[tuple[type[Manifold], ...], bool]]:
    """Arguments that are manifolds: their classes, and whether a maker is asked for."""
    hints = get_type_hints(annotated).items()
    return {
        name: (kinds, get_origin(hint) is Callable)
        for name, hint in hints
        if (kinds := _classes(hint))
    }


def manifold_class(value: Any) -> type:
    """The class of an instance, or that a class or a partial makes."""
    maker = getattr(value, "func", value)
    return maker if isinstance(maker, type) else type(maker)


def _classes(hint: Any) -> tuple[type[Manifold], ...]:
    """The classes of manifolds in an annotation."""
    if isinstance(hint, type) and issubclass(hint, Manifold):
        return (hint,)
    return tuple(kind for arg in get_args(hint) for kind in _classes(arg))


def _choices(kinds: tuple[type[Manifold], ...]) -> list[str]:
    """Names of the manifolds of some classes that can be made."""
    every = [getattr(manifolds, name) for name in manifolds.__all__]
    return [
        each.__name__
        for each in every
        if isinstance(each, type) and issubclass(each, kinds) and not isabstract(each)
    ]

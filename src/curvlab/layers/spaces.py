"""Manifolds as arguments of layers and models: classes, instances or partials, checked."""

from collections.abc import Callable
from functools import cache
from inspect import isabstract, signature
from typing import Any, Self, get_args, get_origin, get_type_hints

from curvlab import manifolds
from curvlab.checked import Checked, check_values
from curvlab.errors import UsageError
from curvlab.manifolds import Manifold


def check_manifolds(owner: str, annotated: Any, arguments: dict[str, Any]) -> None:
    """Refuse manifolds that fit no annotation; make an instance if the annotation requires one."""
    for name, (kinds, is_maker) in _manifolds(annotated).items():
        value = arguments.get(name)
        kind = manifold_class(value)
        unknown = callable(value) and not issubclass(kind, Manifold)  # a function
        if value is None or (unknown and is_maker):
            continue
        if not issubclass(kind, kinds):
            text = kind.__name__ if issubclass(kind, Manifold) else repr(value)
            raise UsageError(f"{owner}: {name}={text} must be {' or '.join(_choices(kinds))}")
        if not is_maker and not isinstance(value, Manifold):
            arguments[name] = value()


class TakesManifold(Checked):
    """Base of layers and models whose constructors take `manifold` as a class or an instance.

    The annotation restricts the class: a layer with `manifold: Lorentz` gets an instance; a model
    with `manifold: SpaceMaker[Stereographic]` makes its spaces itself.
    """

    _checks = (check_values, check_manifolds)

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse other libraries' names of the curvature."""
        for name in {"c", "k", "curvature"} & options.keys():
            if name not in signature(cls.__init__).parameters:
                raise UsageError(
                    f"{cls.__name__} takes no {name}: give the signed curvature kappa to its "
                    "manifold, such as manifold=PoincareBall(kappa=-1.0)"
                )
        return super().__new__(cls)


@cache
def _manifolds(annotated: Any) -> dict[str, tuple[tuple[type[Manifold], ...], bool]]:
    """Arguments that are manifolds: their classes, and whether the argument is a maker."""
    arguments = {}
    for name, hint in get_type_hints(annotated).items():
        kinds = _classes(hint)
        if kinds:
            arguments[name] = (kinds, get_origin(hint) is Callable)
    return arguments


def manifold_class(value: Any) -> type:
    """The class of an instance, or the class that a class or a partial makes."""
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
        kind.__name__
        for kind in every
        if isinstance(kind, type) and issubclass(kind, kinds) and not isabstract(kind)
    ]

"""Transformers and graph networks in curved spaces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvlab.cli.from_python import train as train
    from curvlab.run.load import load as load

__version__ = "0.1.0"

_FUNCTIONS = {"load": "curvlab.run.load", "train": "curvlab.cli.from_python"}
_PACKAGES = ("layers", "manifolds", "models", "optim")


def __getattr__(name: str) -> Any:
    """Import public names lazily: they need torch."""
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(["__version__", *_FUNCTIONS, *_PACKAGES])

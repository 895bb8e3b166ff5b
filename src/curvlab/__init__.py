"""Transformers and graph networks in curved spaces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["__version__", "layers", "load", "manifolds", "models", "optim", "train"]

__version__ = "0.1.0"

_FUNCTIONS = {"load": "curvlab.run.load", "train": "curvlab.cli.from_python"}

if TYPE_CHECKING:
    from curvlab import layers, manifolds, models, optim
    from curvlab.cli.from_python import train
    from curvlab.run.load import load
else:

    def __getattr__(name: str) -> Any:
        """Import public names lazily: they need torch."""
        if name in _FUNCTIONS:
            return getattr(import_module(_FUNCTIONS[name]), name)
        if name in __all__:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)

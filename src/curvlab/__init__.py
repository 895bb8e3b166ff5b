"""Transformers and graph networks in curved spaces."""

import os
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__all__ = ["__version__", "layers", "load", "manifolds", "models", "optim", "train"]

_FUNCTIONS = {"load": "curvlab.run.load", "train": "curvlab.cli.from_python"}

if TYPE_CHECKING:
    from curvlab import layers, manifolds, models, optim
    from curvlab.cli.from_python import train
    from curvlab.run.load import load

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """Import public names lazily: they need torch. The version is the installed package's."""
        if name == "__version__":
            return _version()
        if name in _FUNCTIONS:
            return getattr(import_module(_FUNCTIONS[name]), name)
        if name in __all__:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    try:
        return metadata.version("curvlab")
    except metadata.PackageNotFoundError:  # a checkout on the path
        return "unknown"


def _drop_missing_backend() -> None:
    """Unset `MPLBACKEND` if it names a package that is not installed.

    Jupyter sets the variable for the commands that it starts, too, and Matplotlib refuses to be
    imported without the package. Nothing here depends on the backend.
    """
    scheme, _, module = os.environ.get("MPLBACKEND", "").partition("://")
    package = module.partition(".")[0]
    if scheme == "module" and (not package or find_spec(package) is None):
        del os.environ["MPLBACKEND"]


_drop_missing_backend()


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)

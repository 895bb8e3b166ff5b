"""Transformers and graph networks in curved spaces."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvlab.run.load import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`curvlab.load`, imported when it is first asked for: it needs torch."""
    if name == "load":
        from curvlab.run.load import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

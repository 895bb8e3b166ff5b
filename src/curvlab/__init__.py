"""Transformers and graph networks in curved spaces."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvlab.cli.from_python import train as train
    from curvlab.run.load import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`curvlab.load` and `curvlab.train`, imported when first asked for: they need torch."""
    if name == "load":
        from curvlab.run.load import load

        return load
    if name == "train":
        from curvlab.cli.from_python import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

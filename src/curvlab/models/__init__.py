"""Encoders: a prepared graph in, embeddings on `manifold_out` out; one file an architecture."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def __getattr__(name: str) -> Any:
    """A model, from the first file that defines it; the file of its name is looked at first."""
    if name[:1].isupper():
        files = [module.name for module in iter_modules(__path__)]
        for file in sorted(files, key=lambda file: file.replace("_", "") != name.lower()):
            found = vars(import_module(f"{__name__}.{file}")).get(name)
            if getattr(found, "__module__", None) == f"{__name__}.{file}":
                return found
    raise AttributeError(f"{__name__} has no {name}")

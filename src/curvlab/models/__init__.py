"""Encoders: a prepared graph in, embeddings on `manifold_out` out; one file an architecture."""

from importlib import import_module
from pkgutil import walk_packages
from typing import Any


def __getattr__(name: str) -> Any:
    """A model, from the first file that defines it; the file of its name is looked at first."""
    if name[:1].isupper():
        files = [module.name for module in walk_packages(__path__, f"{__name__}.")]
        for file in sorted(files, key=lambda file: _letters(file) != name.lower()):
            found = vars(import_module(file)).get(name)
            if getattr(found, "__module__", None) == file:
                return found
    raise AttributeError(f"{__name__} has no {name}")


def _letters(file: str) -> str:
    return file.rpartition(".")[2].replace("_", "")

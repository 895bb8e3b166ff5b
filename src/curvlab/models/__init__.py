"""Models, which map a prepared graph to embeddings on `manifold_out`; one file for each family.

`__init__.pyi` names the models for type checkers and editors. A model is imported when it is first
used. `python -m curvlab.config.schema` writes the file.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORT = re.compile(r"(?m)^from (\S+) import (\w+) as \w+$")


@cache
def _modules() -> dict[str, str]:
    """The module of each model."""
    stub = Path(__file__).with_suffix(".pyi").read_text("utf-8")
    return {name: module for module, name in IMPORT.findall(stub)}


__all__ = sorted(_modules())  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a model when it is first used."""
    if name not in _modules():
        raise AttributeError(f"{__name__} has no {name}")
    return getattr(import_module(_modules()[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__

"""Models: a prepared graph in, embeddings on `manifold_out` out; one file a family."""

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

CLASS = re.compile(r"(?m)^class (\w+)\(([^)]*)\)")


@cache
def _modules() -> dict[str, str]:
    """The module of each encoder below this folder, from the files' text, without torch."""
    folder = Path(__file__).parent
    modules = {}
    bases = {}
    for file in sorted(folder.rglob("*.py")):
        place = ".".join(file.relative_to(folder).with_suffix("").parts)
        for name, above in CLASS.findall(file.read_text("utf-8")):
            modules[name] = f"{__name__}.{place}"
            bases[name] = set(re.findall(r"\w+", above))
    encoders = {"Encoder"}
    while more := {name for name in bases if bases[name] & encoders} - encoders:
        encoders |= more
    return {name: modules[name] for name in encoders if not name.startswith("_")}


def __getattr__(name: str) -> Any:
    """Import a model when it is first asked for."""
    module = None if name.startswith("__") else _modules().get(name)
    if module is None:
        raise AttributeError(f"{__name__} has no {name}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(_modules())

"""Encoders: a prepared graph in, embeddings on `manifold_out` out; one file a family of models."""

import sys
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

_FAMILIES = {
    "graph_network": ("gcn", "gat", "sage", "sgc", "chebnet", "mlp", "sign", "dropedge"),
    "curved_gcn": ("hgcn", "hgat", "hat", "hgnn", "kappa_gcn", "q_gcn"),
    "graph_transformers": ("transformer", "graphtrans", "graphgps", "graphormer"),
    "polyformer": ("polyattn", "unifilter"),
    "spectral": ("gprgnn", "bernnet", "chebnet2"),
    "specformer": ("specformer_large",),
    "hybonet": ("lrn",),
    "sgformer": ("lrn_sgformer",),
    "fpst": ("tokengt",),
    "triples.flat": ("triples.distmult", "triples.complex", "triples.transe", "triples.rotate"),
    "triples.ball": ("triples.murp", "triples.roth", "triples.atth"),
    "triples.floors": ("triples.relation_frequency", "triples.reverse_lookup"),
}

MERGED = {
    f"{__name__}.{member}": f"{__name__}.{family}"
    for family, members in _FAMILIES.items()
    for member in members
}
"""Modules by which configurations and results name classes, and the files that have these."""


def _member(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module(module), name)


for _name, _file in MERGED.items():
    _module = sys.modules[_name] = ModuleType(_name, f"The classes of this name are in `{_file}`.")
    vars(_module)["__getattr__"] = partial(_member, _file)
    _parent, _, _last = _name.rpartition(".")
    setattr(import_module(_parent), _last, _module)


def __getattr__(name: str) -> Any:
    """A model, from the first file that defines it; the file of its name is looked at first."""
    if name[:1].isupper():
        files = [m.name for m in walk_packages(__path__, f"{__name__}.")]
        likely = {_letters(old): file for old, file in MERGED.items()}.get(name.lower())
        for file in sorted(files, key=lambda f: f != likely and _letters(f) != name.lower()):
            found = vars(import_module(file)).get(name)
            if getattr(found, "__module__", None) == file:
                return found
    raise AttributeError(f"{__name__} has no {name}")


def _letters(file: str) -> str:
    return file.rpartition(".")[2].replace("_", "")

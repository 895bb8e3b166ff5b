"""Models: a prepared graph in, embeddings on `manifold_out` out; one file a family."""

import sys
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

_FILES = {
    "cat": "cat.CAT",
    "curved_gcn": "hgcn.HGCN hgat.HGAT hat.HAT hgnn.HGNN kappa_gcn.KappaGCN q_gcn.QGCN",
    "fpst": "fpst.FPST tokengt.TokenGT",
    "graph_network": (
        "gcn.GCN gat.GAT sage.GraphSAGE sgc.SGC chebnet.ChebNet mlp.MLP sign.SIGN dropedge.DropEdge"
    ),
    "graph_transformers": (
        "transformer.NodeTransformer graphtrans.GraphTrans graphgps.GraphGPS graphormer.Graphormer"
    ),
    "hybonet": "hybonet.HyboNet lrn.LRN",
    "hypformer": "hypformer.Hypformer",
    "idgl": "idgl.IDGL",
    "lds": "lds.LDS",
    "nagphormer": "nagphormer.NAGphormer",
    "nodeformer": "nodeformer.NodeFormer",
    "polyformer": "polyformer.PolyFormer polyattn.PolyAttn unifilter.UniFilter",
    "sgformer": "sgformer.SGFormer lrn_sgformer.LRNSGFormer",
    "specformer": "specformer.Specformer specformer_large.LargeSpecformer",
    "spectral": "gprgnn.GPRGNN bernnet.BernNet chebnet2.ChebNetII",
    "triples.ball": "triples.murp.MuRP triples.roth.RotH triples.atth.AttH",
    "triples.flat": (
        "triples.distmult.DistMult triples.complex.ComplEx triples.transe.TransE "
        "triples.rotate.RotatE"
    ),
    "triples.floors": (
        "triples.relation_frequency.RelationFrequency triples.reverse_lookup.ReverseLookup"
    ),
}
"""The models of each file, by the names that configurations and results have for them."""

MODELS = {
    target.rpartition(".")[2]: (f"{__name__}.{target.rpartition('.')[0]}", f"{__name__}.{file}")
    for file, targets in _FILES.items()
    for target in targets.split()
}
"""For each model the module that configurations name, and the one that defines it."""


def _member(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(import_module(module), name)


for _name, _file in MODELS.values():
    if _name != _file:
        _module = sys.modules[_name] = ModuleType(_name, f"See `{_file}`.")
        vars(_module)["__getattr__"] = partial(_member, _file)
        _parent, _, _last = _name.rpartition(".")
        setattr(import_module(_parent), _last, _module)


def __getattr__(name: str) -> Any:
    """A model, imported when it is first asked for."""
    if name not in MODELS:
        raise AttributeError(f"{__name__} has no {name}")
    return getattr(import_module(MODELS[name][1]), name)


def __dir__() -> list[str]:
    return sorted(MODELS)

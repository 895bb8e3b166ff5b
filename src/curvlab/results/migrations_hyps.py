"""What stored configurations of Hypformer, CAT, PolyFormer's family and models of triples became.

Before, PolyAttn and UniFilter were options of PolyFormer, GPR-GNN, BernNet and ChebNetII those of
one perceptron, and widths that follow others were written out.
"""

from typing import Any

Node = dict[str, Any]

MODELS = "curvlab.models."

MOVED = {
    "kg_distance.TransE": "triples.transe.TransE",
    "kg_distance.RotatE": "triples.rotate.RotatE",
    "kg_bilinear.DistMult": "triples.distmult.DistMult",
    "kg_bilinear.ComplEx": "triples.complex.ComplEx",
    "kg_hyperbolic.MuRP": "triples.murp.MuRP",
    "kg_hyperbolic.RotH": "triples.roth.RotH",
    "kg_hyperbolic.AttH": "triples.atth.AttH",
    "kg_floors.RelationFrequency": "triples.relation_frequency.RelationFrequency",
    "kg_floors.ReverseLookup": "triples.reverse_lookup.ReverseLookup",
    "specformer.LargeSpecformer": "specformer_large.LargeSpecformer",
}
"""Classes below `curvlab.models`, before and after each had a file."""

FILTERED = {
    "GPRFilter": "gprgnn.GPRGNN",
    "BernsteinFilter": "bernnet.BernNet",
    "ChebyshevInterpolation": "chebnet2.ChebNetII",
}
"""Networks that filter after a perceptron, by their filter."""

STAYED = ("hypformer.Hypformer", "cat.CAT", "nagphormer.NAGphormer", "specformer.Specformer")

SAID_BY_CLASSES = ("manifolds", "tasks", "whole_graph", "data", "untold")
"""What `requires` had and a signature or a class attribute now says."""


def migrate_hyps(stored: Node) -> Node:
    """A stored result of one of these models, with the classes and options of today; others as is.

    Args:
        stored: a `result.json`, or another mapping with `config`.
    """
    config = stored.get("config") or {}
    model = config.get("model") or {}
    target = str(model.get("_target_", "")).removeprefix(MODELS)
    if target == "polyformer.PolyFormer":
        target, model = _of_tokens(model)
    elif target == "spectral.FilteredPerceptron":
        target = FILTERED[model["filter"]["_target_"].rpartition(".")[2]]
    elif target in MOVED or target in STAYED:
        target = MOVED.get(target, target)
    else:
        return stored
    if target == "hypformer.Hypformer":
        model = _hypformer(model)
    requires = dict(model.get("requires") or {})
    if "num_classes" in requires.get("data", ()):
        model = {**model, "logits": True}
    requires = {key: value for key, value in requires.items() if key not in SAID_BY_CLASSES}
    model = _without(model, "manifold", "curvature")  # which the group `manifold` has
    model = {**model, "_target_": MODELS + target, "requires": requires}
    return {**stored, "config": {**config, "model": model}}


def _of_tokens(node: Node) -> tuple[str, Node]:
    """UniFilter has no layer to choose, PolyAttn no feed-forward network; the rest is PolyFormer.

    Heads and dropout of the layer were the model's, dropout of the feed-forward network the same.
    """
    node = _without(node, "ffn_dropout") | {"layer": _without(node["layer"], "heads", "dropout")}
    if node["layer"]["_target_"].endswith("SharedCoefficients"):
        return "unifilter.UniFilter", _without(node, "layer", "ffn_dim")
    if node.get("ffn_dim", 0) is None:
        return "polyattn.PolyAttn", _without(node, "ffn_dim")
    return "polyformer.PolyFormer", _without_default(node, "ffn_dim", node["dim"])


def _hypformer(node: Node) -> Node:
    """Heads as wide as the model are null; a decoder's maps are said where it has two branches."""
    node = _without_default(node, "head_dim", node["dim"])
    both = node.get("transformer", True) and node.get("graph", True)
    if not (both and node.get("fusion", "tangent") == "tangent"):
        return _without(node, "linear_maps")
    return {"linear_maps": None, **node}  # a missing key was one map


def _without(node: Node, *names: str) -> Node:
    return {key: value for key, value in node.items() if key not in names}


def _without_default(node: Node, name: str, default: Any) -> Node:
    """A node in which an option that has what null stands for is null."""
    return {**node, name: None} if node.get(name) == default else node

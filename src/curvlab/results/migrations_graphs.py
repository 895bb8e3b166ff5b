"""What the stored configurations of graph networks are called, now that each has a class.

Before, configurations gave `GraphNetwork` its `layer` and `adjacency`, LRN was HyboNet with a
`residual`, and the curved networks shared a file.
"""

from typing import Any

Node = dict[str, Any]

MODELS = "curvlab.models."

NETWORKS = {
    ("torch.nn.Linear", "none"): "mlp.MLP",
    ("torch_geometric.nn.GCNConv", "edge_index"): "gcn.GCN",
    ("torch_geometric.nn.GATConv", "edge_index"): "gat.GAT",
    ("torch_geometric.nn.SAGEConv", "csr"): "sage.GraphSAGE",
    ("curvlab.models.baselines.MeanSAGE", "edge_index"): "sage.GraphSAGE",
    ("torch_geometric.nn.SGConv", "csr"): "sgc.SGC",
    ("torch_geometric.nn.ChebConv", "edge_index"): "chebnet.ChebNet",
}
"""Classes of networks below `curvlab.models`, by their layer and what it got of the graph."""

LAYER_OPTIONS = {
    "mlp.MLP": {},
    "gcn.GCN": {"cached": "cached"},
    "gat.GAT": {"dropout": "attention_dropout", "heads": "heads"},
    "sage.GraphSAGE": {},
    "sgc.SGC": {"K": "K", "cached": "cached"},
    "chebnet.ChebNet": {"K": "K"},
}
"""What options of the layer are called in the network."""

MOVED = {
    "curved_gcn.HGCN": "hgcn.HGCN",
    "curved_gcn.HGAT": "hgat.HGAT",
    "curved_gcn.HGNN": "hgnn.HGNN",
    "curved_gcn.HAT": "hat.HAT",
    "curved_gcn.KappaGCN": "kappa_gcn.KappaGCN",
    "graph_transformers.GraphTrans": "graphtrans.GraphTrans",
    "graph_transformers.GraphGPS": "graphgps.GraphGPS",
}
STAYED = (
    "q_gcn.QGCN",
    "hybonet.HyboNet",
    "lrn_sgformer.LRNSGFormer",
    "sgformer.SGFormer",
    "nodeformer.NodeFormer",
    "idgl.IDGL",
    "lds.LDS",
    "graphormer.Graphormer",
    "transformer.NodeTransformer",
)

SAID_BY_CLASSES = ("manifolds", "tasks", "whole_graph", "data", "untold")
"""What `requires` had and a signature or a class attribute now says."""

FRONT = {
    "activation": "relu",
    "skip_average": False,
    "normalisation": "batch",
    "residual": False,
    "input_layer": False,
    "last_activation": True,
}
"""What `FrontGCN` has and no option changes."""


def migrate_graphs(stored: Node) -> Node:
    """A stored result of a graph network, with the classes and options of today; others as is.

    Args:
        stored: a `result.json`, or another mapping with `config`.
    """
    config = stored.get("config") or {}
    model = config.get("model") or {}
    target = str(model.get("_target_", "")).removeprefix(MODELS)
    if target in ("baselines.GraphNetwork", "dropedge.DropEdgeNetwork"):
        migrated = _with_logits(_network(model))
    elif target in MOVED or target in STAYED:
        migrated = {**model, "_target_": MODELS + MOVED.get(target, target)}
    else:
        return stored
    if target == "hybonet.HyboNet":
        migrated = _lrn(migrated)
    elif target == "lrn_sgformer.LRNSGFormer":
        migrated["residual"] = _branch_sum(migrated["residual"])
    elif target == "graph_transformers.GraphTrans":
        migrated["graph_network"] = _front(migrated["graph_network"])
    migrated.pop("manifold", None)
    requires = {k: v for k, v in model.get("requires", {}).items() if k not in SAID_BY_CLASSES}
    if "transforms" in requires:
        requires["transforms"] = [_without_loops(transform) for transform in requires["transforms"]]
    config = {**config, "model": {**migrated, "requires": requires}}
    if target in ("curved_gcn.HGNN", "curved_gcn.HAT"):
        requires.pop("learnable", None)
        space = config.get("manifold") or {}
        if space.get("name") == "poincare" and space.get("learnable") is False:
            config["manifold"] = {**space, "name": "poincare_fixed"}
    return {**stored, "config": config}


def _network(node: Node) -> Node:
    """A `GraphNetwork` by its layer; with one that is nobody's a `GraphNetwork` still."""
    layer, adjacency = node["layer"], node["adjacency"]
    rest = {key: value for key, value in node.items() if key not in ("layer", "adjacency")}
    options = {key: value for key, value in layer.items() if not key.startswith("_")}
    kind = NETWORKS.get((layer["_target_"], adjacency), "")
    names = LAYER_OPTIONS.get(kind, {})
    if not kind or not set(options) <= set(names):
        return {**node, "_target_": f"{MODELS}graph_network.GraphNetwork"}
    if kind == "mlp.MLP" and "hops" in node:
        kind = "sign.SIGN"
    if kind == "gcn.GCN" and "edge_dropout" in node:
        kind, names = "dropedge.DropEdge", {}
    if layer["_target_"].endswith("MeanSAGE"):
        rest["project_first"] = True
    of_layer = {names[key]: value for key, value in options.items() if key in names}
    return {**of_layer, **rest, "_target_": MODELS + kind}


def _with_logits(node: Node) -> Node:
    """Logits, where the data had the number of classes."""
    told = "num_classes" in node.get("requires", {}).get("data", ())
    return {**node, "logits": True} if told else node


def _without_loops(node: Node) -> Node:
    """An adjacency as it was made before it had an option: without self-loops."""
    of_ones = node["_target_"].endswith(".SparseAdjacency")
    return {**node, "self_loops": node.get("self_loops", False)} if of_ones else node


def _lrn(node: Node) -> Node:
    """HyboNet without a residual connection, and LRN with one."""
    if node.get("residual") is not None:
        return {**node, "_target_": f"{MODELS}lrn.LRN"}
    return {key: value for key, value in node.items() if key not in ("residual", "skip_mode")}


def _branch_sum(node: Node) -> Node:
    """The sum of SGFormer's branches, whose form and order are fixed."""
    kept = {key: value for key, value in node.items() if key not in ("form", "reverse")}
    if node.get("form", "stable") != "stable" or node.get("reverse", False):
        return node
    return {**kept, "_target_": f"{MODELS}lrn_sgformer.BranchSum"}


def _front(node: Node) -> Node:
    """GraphTrans's network in front; a GCN where more than depth or dropout was changed."""
    made = _network(node)
    differs = any(made.get(key, value) != value for key, value in FRONT.items())
    if differs or made["_target_"] != f"{MODELS}gcn.GCN":
        return made
    kept = {key: value for key, value in made.items() if key not in FRONT}
    return {**kept, "_target_": f"{MODELS}graphtrans.FrontGCN"}

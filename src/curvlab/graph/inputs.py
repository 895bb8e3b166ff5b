"""Graphs with which models are called: built from tensors, and checked."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph

_GRAPHS = WeakTensorKeyDictionary()
"""Graphs by their `edge_index`, each with what models derived from it; freed with that tensor."""


@torch.compiler.disable
def graph_of(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, derived: Hashable = None
) -> Data:
    """Build a graph from tensors; the next call with the same `edge_index` returns the same graph.

    Args:
        x: Features `[nodes, in_channels]`.
        edge_index: Edges `[2, edges]`.
        edge_weight: Weights `[edges]`; None: the graph has none.
        derived: Name of the values derived from the graph; each name has a separate graph.
    """
    graphs: dict[Hashable, Data] = _GRAPHS.setdefault(edge_index, {})
    key = derived, x.shape[0], x.dtype, x.device
    # An alias shares the version counter: the graph sees changes and does not keep its key alive.
    graph = graphs.setdefault(key, Data(edge_index=edge_index.detach()))
    graph.x = x
    if edge_weight is not None:
        graph.edge_weight = edge_weight
    elif "edge_weight" in graph:
        del graph.edge_weight
    return graph


@torch.compiler.disable
def check_inputs(
    model: str, graph: Data, in_channels: int | None, weights: Tensor | None, weighted: bool
) -> None:
    """Refuse tensors of a graph that a model cannot take, in one sentence.

    Args:
        model: Name of the model.
        graph: The graph; attributes that it lacks are not checked.
        in_channels: Number of features; None: any.
        weights: A parameter of the model, whose type and device are the features'; None: any.
        weighted: Whether the model uses `edge_weight`.
    """
    x = graph.get("x")
    edges = graph.get("edge_index")
    edge_weight = graph.get("edge_weight")
    if x is not None:
        _check_features(model, x, in_channels, weights)
    if edges is not None:
        _check_edges(model, edges)
    if edges is not None and x is not None:
        _check_ends(model, graph)
    if edge_weight is None:
        return
    if not weighted:
        raise UsageError(
            f"{model} does not use edge weights: leave out edge_weight, or choose a model that "
            "uses them, such as GCN, SGFormer or Hypformer"
        )
    _check_tensor(model, "edge_weight", edge_weight, "[edges]", 1)
    if not edge_weight.is_floating_point() or len(edge_weight) != edges.shape[1]:
        raise UsageError(
            f"{model}: edge_weight is {_shape(edge_weight)} of {_type(edge_weight)}: give one "
            f"floating-point number per edge, [{edges.shape[1]}]"
        )


def _check_features(model: str, x: Any, in_channels: int | None, weights: Tensor | None) -> None:
    _check_tensor(model, "x", x, "[nodes, in_channels]", 2)
    if in_channels is not None and x.shape[1] != in_channels:
        raise UsageError(
            f"{model}: x is {_shape(x)}, {x.shape[1]} features per node, and the model was built "
            f"with in_channels={in_channels}: build it with in_channels={x.shape[1]}"
        )
    if not x.is_floating_point():
        raise UsageError(f"{model}: x is {_type(x)}: features are floating-point, use x.float()")
    if weights is None or torch.is_autocast_enabled(x.device.type):
        return
    if x.device.type != weights.device.type:
        raise UsageError(
            f"{model}: x is on {x.device.type} and the model on {weights.device.type}: move one "
            "of them with .to(device)"
        )
    if {x.dtype, weights.dtype} == {torch.float32, torch.float64}:
        raise UsageError(
            f"{model}: x is {_type(x)} and the model {_type(weights)}: use x.to(torch."
            f"{_type(weights)}), or model.to(torch.{_type(x)})"
        )


def _check_edges(model: str, edges: Any) -> None:
    _check_tensor(model, "edge_index", edges, "[2, edges]", 2)
    if edges.shape[0] != 2:
        hint = " (this may be its transpose: use edge_index.T)" if edges.shape[1] == 2 else ""
        raise UsageError(
            f"{model}: edge_index is {_shape(edges)}: give [2, edges], sources in the first row "
            f"and targets in the second{hint}"
        )
    if edges.dtype != torch.int64:
        raise UsageError(
            f"{model}: edge_index is {_type(edges)}: numbers of nodes are int64, use "
            "edge_index.long()"
        )


def _check_ends(model: str, graph: Data) -> None:
    """Refuse edges on another device, or to nodes that the graph does not have.

    The ends are checked once per `edge_index`, and only on CPU: an accelerator would synchronise.
    """
    edges = graph.edge_index
    nodes = len(graph.x)
    if edges.device.type != graph.x.device.type:
        raise UsageError(
            f"{model}: edge_index is on {edges.device.type} and x on {graph.x.device.type}: move "
            "one of them with .to(device)"
        )
    if edges.device.type != "cpu" or edges.shape[1] == 0:
        return
    ends = SparseGraph.from_data(graph).derive(
        "ends", ("edge_index",), lambda _: (int(edges.min()), int(edges.max()))
    )
    if not 0 <= ends[0] <= ends[1] < nodes:
        wrong = ends[0] if ends[0] < 0 else ends[1]
        raise UsageError(
            f"{model}: edge_index names node {wrong}, and x has {nodes} rows: nodes are numbered "
            f"from 0 to {nodes - 1}"
        )


def _check_tensor(model: str, name: str, value: Any, shape: str, dims: int) -> None:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise UsageError(f"{model}: {name} is of type {kind}: give a tensor {shape}")
    if value.dim() != dims:
        raise UsageError(f"{model}: {name} is {_shape(value)}: give a tensor {shape}")


def _shape(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")

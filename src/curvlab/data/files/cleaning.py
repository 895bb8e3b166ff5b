"""Cleaning and checks of graphs, the same for every data set."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError


def simple_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Both directions of every edge `[2, 2M]`, sorted, no duplicates, no self-loops."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    # One number an edge: sorting pairs with their places takes four times the memory.
    key = torch.cat([source * num_nodes + target, target * num_nodes + source]).unique()
    return torch.stack([key // num_nodes, key % num_nodes])


def clean(raw: Data, num_classes: int) -> Data:
    """The simple undirected graph with dense float32 features and whole-number labels."""
    check_edges(raw)
    check_features(raw)
    check_labels(raw, num_classes)
    data = raw.clone()
    data.num_nodes = raw.num_nodes
    data.x = raw.x.to(torch.float32)
    data.y = raw.y.to(torch.int64)
    data.edge_index = simple_edges(raw.edge_index, int(raw.num_nodes or 0))
    return data


def check_graph(data: Data) -> None:
    """Refuse a graph that cannot be trained on."""
    check_edges(data)
    check_features(data)
    if data.y is not None:
        check_labels(data)


def check_edges(data: Data) -> None:
    """Refuse a graph without edges, unless marked `without_edges`, or with edges to no node."""
    nodes = int(data.num_nodes or 0)
    if nodes > 0 and data.get("without_edges") and data.num_edges == 0:
        return
    if nodes == 0 or data.edge_index is None or data.num_edges == 0:
        raise UsageError(
            f"the graph is empty ({nodes} nodes, {data.num_edges} edges): check its source."
        )
    if not 0 <= int(data.edge_index.min()) <= int(data.edge_index.max()) < nodes:
        raise UsageError(f"the graph has edges to nodes outside 0 ... {nodes - 1}.")


def check_features(data: Data) -> None:
    """Refuse a graph without features, or with features that are not finite, one row a node."""
    nodes = int(data.num_nodes or 0)
    if data.x is None:
        raise UsageError("the graph has no node features: give the dataset a `features` transform.")
    if data.x.shape[0] != nodes:
        raise UsageError(f"the graph has {nodes} nodes but {data.x.shape[0]} rows of features.")
    bad_rows = (~torch.isfinite(data.x)).any(dim=1)
    if bad_rows.any():
        raise UsageError(
            f"{int(bad_rows.sum())} nodes have features that are NaN or infinite, the first is "
            f"node {int(bad_rows.nonzero()[0])}: clean the dataset's features."
        )


def check_labels(data: Data, num_classes: int | None = None) -> None:
    """Refuse labels that are missing, out of range or all the same.

    `y [nodes]` has classes 0, 1, ..., at most `num_classes`, or `y [nodes, labels]` zeros and ones.
    Where `labelled [nodes]` is given and false, a node needs no label.
    """
    y = data.y
    nodes = int(data.num_nodes or 0)
    if y is None:
        raise UsageError(
            "the graph has no labels: choose a dataset of node classification, give your own graph "
            "a column label, or reconstruct it by task=reconstruction."
        )
    if len(y) != nodes:
        raise UsageError(f"the graph has {nodes} nodes but {len(y)} labels.")
    is_labelled = data.get("labelled", torch.ones(nodes, dtype=torch.bool, device=y.device))
    if y.dim() == 2:
        fits = ((y == 0) | (y == 1)).all(dim=1)
        classes = "0 and 1"
    else:
        fits = (y >= 0) & (y < (num_classes or y.max() + 1))
        if y.is_floating_point():
            fits &= y == y.trunc()
        classes = f"0 ... {num_classes - 1}" if num_classes else "0 ..."
    wrong = is_labelled & ~fits
    if wrong.any():
        raise UsageError(
            f"{int(wrong.sum())} nodes have labels that are not among {classes}, the first is node "
            f"{int(wrong.nonzero()[0])}: number the classes from 0, and leave nodes without a "
            "label out of the graph."
        )
    y = y[is_labelled]
    reason = ""
    if not len(y):
        reason = "no node has a label"
    elif y.dim() == 1 and bool((y == y[0]).all()):
        reason = f"all {len(y)} nodes are of class {int(y[0])}"
    if reason:
        raise UsageError(
            f"{reason}, so that there is nothing to tell apart: choose another dataset."
        )


def check_statistics(name: str, actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse the graph of this name if known statistics are not the expected ones (None: any)."""
    differing = []
    for key, value in expected.items():
        if key in actual and value is not None and actual[key] != value:
            differing.append(f"{key}={actual[key]} instead of {value}")
    if differing:
        raise UsageError(
            f"{name} is not the graph that its configuration describes: it has "
            f"{', '.join(differing)}; correct the statistics or the file's address and checksum."
        )

"""Cleaning of raw graphs, the same for every data set."""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from curvlab.data.files.checks import check_edges, check_features, check_labels


def simple_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Both directions of every edge `[2, 2M]`, sorted, no duplicates, no self-loops."""
    return to_undirected(remove_self_loops(edge_index)[0], num_nodes=num_nodes)


def homophily(edge_index: Tensor, y: Tensor) -> float:
    """Fraction of the edges as listed, self-loops and all, that join nodes of one class."""
    source, target = edge_index
    return float((y[source] == y[target]).double().mean())


def cleaned(raw: Data, num_classes: int) -> Data:
    """The simple undirected graph with dense float32 features and whole-number labels.

    Args:
        raw: The graph as it came: `edge_index` of any kind, `x`, `y [nodes]` or `[nodes, labels]`.
        num_classes: Number of classes that the labels may name.

    Returns:
        `x [nodes, features]`, `y` (int64), `edge_index [2, 2M]` and what else `raw` has.

    Raises:
        UsageError: Edges, features or labels are unusable.
    """
    check_edges(raw)
    check_features(raw)
    check_labels(raw, num_classes)
    data = raw.clone()
    data.num_nodes = raw.num_nodes
    data.x = raw.x.to(torch.float32)
    data.y = raw.y.to(torch.int64)
    data.edge_index = simple_edges(raw.edge_index, int(raw.num_nodes or 0))
    return data

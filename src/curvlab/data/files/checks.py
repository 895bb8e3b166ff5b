"""Checks of graphs before training, each with one sentence for the user."""

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch_geometric.data import Data

from curvlab.errors import UsageError

log = logging.getLogger(__name__)


def check_graph(data: Data) -> None:
    """Refuse a graph that cannot be trained on; nodes without neighbours are only counted.

    Raises:
        UsageError: No nodes, no edges, no features, edges to nodes that do not exist, features
            that are not finite or not one row a node, or labels that are not labels.
    """
    check_edges(data)
    check_features(data)
    if data.y is not None:
        check_labels(data)
    isolated = int(data.num_nodes or 0) - len(torch.unique(data.edge_index))
    if isolated:
        log.info("%d of %d nodes have no neighbour", isolated, data.num_nodes)


def check_edges(data: Data) -> None:
    """Refuse a graph without nodes or edges, or with edges to nodes that do not exist.

    A graph marked `without_edges` may have none.

    Raises:
        UsageError: It is such a graph.
    """
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
    """Refuse a graph without features, or with features that are not finite, one row a node.

    Raises:
        UsageError: See above.
    """
    nodes = int(data.num_nodes or 0)
    if data.x is None:
        raise UsageError("the graph has no node features: give the dataset a `features` transform.")
    if data.x.shape[0] != nodes:
        raise UsageError(f"the graph has {nodes} nodes but {data.x.shape[0]} rows of features.")
    bad_rows = (~torch.isfinite(data.x)).any(dim=1)
    if bad_rows.any():
        raise not_finite(int(bad_rows.sum()), int(bad_rows.nonzero()[0]))


def not_finite(nodes: int, first: int) -> UsageError:
    """The error for features that are not finite."""
    return UsageError(
        f"{nodes} nodes have features that are NaN or infinite, the first is node {first}: clean "
        "the dataset's features."
    )


def check_labels(data: Data, num_classes: int | None = None) -> None:
    """Refuse labels that are missing, out of range or all the same.

    Args:
        data: `y [nodes]` holds classes 0, 1, ..., or `y [nodes, labels]` zeros and ones. Where
            `labelled [nodes]` is given and false, a node needs no label.
        num_classes: Number of classes; None: that of the labels.

    Raises:
        UsageError: See above.
    """
    y, nodes = data.y, int(data.num_nodes or 0)
    if y is None:
        raise UsageError(
            "the graph has no labels: choose a dataset of node classification, give your own graph "
            "a column label, or reconstruct it by task=reconstruction."
        )
    if len(y) != nodes:
        raise UsageError(f"the graph has {nodes} nodes but {len(y)} labels.")
    known = data.get("labelled", torch.ones(nodes, dtype=torch.bool, device=y.device))
    if y.dim() == 2:
        fits, classes = ((y == 0) | (y == 1)).all(dim=1), "0 and 1"
    else:
        fits = (y >= 0) & (y == (y.trunc() if y.is_floating_point() else y))
        fits &= y < (num_classes or y.max() + 1)
        classes = f"0 ... {num_classes - 1 if num_classes else ''}".strip()
    wrong = known & ~fits
    if wrong.any():
        raise UsageError(
            f"{int(wrong.sum())} nodes have labels that are not among {classes}, the first is node "
            f"{int(wrong.nonzero()[0])}: number the classes from 0, and leave nodes without a "
            "label out of the graph."
        )
    y = y[known]
    if not len(y) or (y.dim() == 1 and bool((y == y[0]).all())):
        what = f"all {len(y)} nodes are of class {int(y[0])}" if len(y) else "no node has a label"
        raise UsageError(f"{what}, so that there is nothing to tell apart: choose another dataset.")


def check_statistics(name: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a graph that is another one than its configuration describes.

    Args:
        name: of the graph in messages.
        found: its statistics, as far as they are known.
        expected: their right values; None where nothing is known.

    Raises:
        UsageError: All statistics that differ, in one sentence.
    """
    differing = [
        f"{key}={found[key]} instead of {value}"
        for key, value in expected.items()
        if key in found and value is not None and found[key] != value
    ]
    if differing:
        raise UsageError(
            f"{name} is not the graph that its configuration describes: it has "
            f"{', '.join(differing)}; correct the statistics or the file's address and checksum."
        )

"""The tree that is near a graph, by Gromov's construction, and how far the graph is from it."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from torch import Tensor

from curvlab.analysis.distances import adjacency_matrix, distances_from

BASES = 8
"""Roots that are tried."""


@dataclass(frozen=True)
class TreeDistortion:
    """How far distances of a graph are from those of a tree.

    Attributes:
        mean: mean of `|d_tree / d - 1|` over pairs of nodes; 0 for a tree.
        worst: its maximum.
        nodes: number of nodes that were compared.
    """

    mean: float
    worst: float
    nodes: int


def tree_distortion(
    edge_index: Tensor, num_nodes: int, max_nodes: int = 600, seed: int = 0
) -> TreeDistortion:
    """Distortion of the best of some Gromov trees of the largest component.

    Args:
        edge_index: edges `[2, edges]`; direction, duplicates and self-loops are ignored.
        num_nodes: number of nodes.
        max_nodes: of a larger component, so many random nodes are compared, by their distances in
            the whole graph.
        seed: of these nodes, and of the roots that are tried.

    Raises:
        UsageError: The graph has no edges.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    _, component = connected_components(adjacency, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    generator = np.random.default_rng(seed)
    if len(nodes) > max_nodes:
        nodes = generator.choice(nodes, max_nodes, replace=False)
    distance = distances_from(adjacency, nodes)[:, nodes]
    central = int(distance.sum(axis=1).argmin())
    others = generator.choice(len(nodes), min(BASES - 1, len(nodes)), replace=False)
    upper = np.triu_indices(len(nodes), k=1)
    errors = (
        np.abs(gromov_tree(distance, int(base))[upper] / distance[upper] - 1)
        for base in (central, *others)
    )
    best = min(errors, key=lambda error: error.mean())
    return TreeDistortion(float(best.mean()), float(best.max()), len(nodes))


def gromov_tree(distance: np.ndarray, base: int) -> np.ndarray:
    """Distances `[points, points]` of the tree that keeps those to a point.

    `d_tree(x, y) = d(w, x) + d(w, y) - 2 max over chains min (x_i | x_(i+1))_w`, with Gromov
    products `(x | y)_w = (d(w, x) + d(w, y) - d(x, y)) / 2`; the chains are those of single
    linkage. It is at most d, at least `d - 2 delta log2 n` less a constant, and d on a tree.

    Source: Gromov 1987, "Hyperbolic groups", 6.1.

    Args:
        distance: between points, `[points, points]`.
        base: the point w.
    """
    from_base = distance[base]
    product = (from_base[:, None] + from_base - distance) / 2
    # Single linkage joins by the smallest value: the largest products first.
    top = product.max()
    gap = squareform(top - product, checks=False)
    best = top - squareform(cophenet(linkage(gap, method="single")))
    tree = from_base[:, None] + from_base - 2 * best
    np.fill_diagonal(tree, 0)
    return tree

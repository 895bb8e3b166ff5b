"""Shortest paths of an unweighted graph."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

from curvlab.errors import UsageError


def adjacency_matrix(edge_index: Tensor, num_nodes: int) -> csr_array:
    """Symmetric 0/1 adjacency `[nodes, nodes]` without self-loops, column indices sorted."""
    row, col = edge_index.cpu().numpy()
    row, col = row[row != col], col[row != col]
    if len(row) == 0:
        raise UsageError("a graph without edges has no curvature or hyperbolicity.")
    directed = csr_array((np.ones(len(row)), (row, col)), shape=(num_nodes, num_nodes))
    adjacency = ((directed + directed.T) > 0).astype(np.float32).tocsr()
    adjacency.sort_indices()
    return adjacency


def largest_component(adjacency: csr_array) -> np.ndarray:
    """Numbers of the nodes of the largest connected component, ascending."""
    _, component = connected_components(adjacency, directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())


def distances_from(adjacency: csr_array, sources: np.ndarray) -> np.ndarray:
    """Numbers of edges `[sources, nodes]` from the sources to all nodes; inf if unreachable."""
    return dijkstra(adjacency, unweighted=True, indices=sources)

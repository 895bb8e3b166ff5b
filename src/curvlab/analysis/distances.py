"""Shortest paths of an unweighted graph."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_scipy_sparse_matrix, to_undirected

from curvlab.errors import UsageError


def adjacency_matrix(edge_index: Tensor, num_nodes: int) -> csr_array:
    """Symmetric adjacency of ones `[nodes, nodes]` without self-loops, column indices sorted.

    Direction, duplicates and self-loops of the edges `[2, edges]` are ignored.
    """
    edges, _ = remove_self_loops(edge_index.cpu())
    if edges.shape[1] == 0:
        raise UsageError("a graph without edges has no curvature or hyperbolicity.")
    edges = to_undirected(edges, num_nodes=num_nodes)
    return csr_array(to_scipy_sparse_matrix(edges, num_nodes=num_nodes))


def largest_component(adjacency: csr_array) -> np.ndarray:
    """Numbers of the nodes of the largest connected component, ascending."""
    _, component = connected_components(adjacency, directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())


def distances_from(adjacency: csr_array, sources: np.ndarray) -> np.ndarray:
    """Numbers of edges `[sources, nodes]` from the sources to all nodes; inf if unreachable."""
    return dijkstra(adjacency, unweighted=True, indices=sources)

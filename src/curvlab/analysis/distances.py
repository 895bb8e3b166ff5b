"""Shortest paths of an unweighted graph, in blocks of sources."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from curvlab.errors import UsageError


def adjacency_matrix(edge_index: Tensor, num_nodes: int) -> csr_array:
    """Symmetric 0/1 adjacency `[nodes, nodes]` without self-loops, column indices sorted.

    Raises:
        UsageError: The graph has no edges.
    """
    row, col = edge_index.cpu().numpy()
    proper = row != col
    row, col = row[proper], col[proper]
    if len(row) == 0:
        raise UsageError("a graph without edges has no curvature or hyperbolicity.")
    directed = csr_array((np.ones(len(row)), (row, col)), shape=(num_nodes, num_nodes))
    adjacency = ((directed + directed.T) > 0).astype(np.float32).tocsr()
    adjacency.sort_indices()
    return adjacency


def distances_from(adjacency: csr_array, sources: np.ndarray) -> np.ndarray:
    """Numbers of edges `[sources, nodes]` from the sources to all nodes; inf if unreachable."""
    return dijkstra(adjacency, unweighted=True, indices=sources)


def distance_blocks(adjacency: csr_array, block: int) -> Iterator[np.ndarray]:
    """Distances from all nodes, `block` sources at a time, `[sources, nodes]` each."""
    for start in range(0, adjacency.shape[0], block):
        sources = np.arange(start, min(start + block, adjacency.shape[0]))
        yield distances_from(adjacency, sources)

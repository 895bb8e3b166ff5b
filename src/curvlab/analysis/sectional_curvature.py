"""Sectional curvature of a graph: a comparison of its triangles with flat triangles."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from curvlab.analysis.hyperbolicity import adjacency_matrix, shortest_distances
from curvlab.errors import UsageError

SOURCE_BLOCK = 512  # number of sources whose distances are in memory at a time
ENTRIES_PER_CHUNK = 4_000_000  # entries of the largest temporary array


@dataclass(frozen=True)
class SectionalCurvature:
    """Curvature `K(m; b, c)` of all triples: a node m and two of its neighbours b < c."""

    per_triple: np.ndarray  # `[triples]`, float32, in the order of `node`
    node: np.ndarray  # node m of each triple, `[triples]`
    num_nodes: int

    @property
    def mean(self) -> float:
        """Mean over all triples; nodes with many neighbours dominate."""
        return float(self.per_triple.mean(dtype=np.float64))

    @property
    def per_node(self) -> np.ndarray:
        """Mean over the triples of each node, `[nodes]`; NaN with fewer than two neighbours."""
        count = np.bincount(self.node, minlength=self.num_nodes)
        total = np.bincount(self.node, self.per_triple, self.num_nodes)
        mean = np.full(self.num_nodes, np.nan)
        return np.divide(total, count, out=mean, where=count > 0)


def sectional_curvature(edge_index: Tensor, num_nodes: int) -> SectionalCurvature:
    """Sectional curvature of all triples of a graph, from its shortest-path distances D.

    `K(m; b, c) = 1/(N-1) sum_{a != m} 1/(2 D_am) [D_am^2 + D_bc^2 / 4 - (D_ab^2 + D_ac^2) / 2]`

    for neighbours b != c of m. The curvature is 0 on a line, negative in a tree, positive on a
    cycle. In a graph of several components, a runs over the component of m and N is its size. The
    sums over a are computed once per node and once per edge, never per triple.

    Source: Gu et al. 2019; FPS-T Eq. 12 has no weight and includes a = m.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    degree = np.diff(adjacency.indptr)
    neighbour = adjacency.indices
    centres = np.flatnonzero(degree > 1)
    if len(centres) == 0:
        raise UsageError("sectional curvature needs a node with two neighbours; there is none.")
    node_of_edge = np.repeat(np.arange(num_nodes), degree)
    count = np.zeros(num_nodes)  # number of nodes a, for each node m
    constant = np.zeros(num_nodes)  # sum of D_am / 2
    weight = np.zeros(num_nodes)  # sum of 1 / (2 D_am)
    spread = np.zeros(len(neighbour))  # sum of D_ab^2 / (2 D_am), for each edge (m, b)
    chunk = max(ENTRIES_PER_CHUNK // SOURCE_BLOCK, 1)
    for first in range(0, num_nodes, SOURCE_BLOCK):
        sources = np.arange(first, min(first + SOURCE_BLOCK, num_nodes))
        distance = shortest_distances(adjacency, sources).T
        distance = np.ascontiguousarray(distance, dtype=np.float32)
        is_summand = (distance > 0) & np.isfinite(distance)
        distance[~is_summand] = 0
        half_inverse = np.zeros_like(distance)
        np.divide(0.5, distance, out=half_inverse, where=is_summand)
        square = distance**2
        count += is_summand.sum(axis=1)
        constant += distance.sum(axis=1, dtype=np.float64) / 2
        weight += half_inverse.sum(axis=1, dtype=np.float64)
        for start in range(0, len(neighbour), chunk):
            edges = slice(start, start + chunk)
            weights = half_inverse[node_of_edge[edges]]
            spread[edges] += np.einsum("ea,ea->e", weights, square[neighbour[edges]])
    values = []
    for m in centres:
        edges = slice(adjacency.indptr[m], adjacency.indptr[m + 1])
        neighbours = neighbour[edges]
        b, c = np.triu_indices(degree[m], 1)
        is_edge = adjacency[neighbours][:, neighbours].toarray()[b, c]
        square = 4 - 3 * is_edge  # D_bc is 1 or 2
        mean_spread = (spread[edges][b] + spread[edges][c]) / 2
        total = constant[m] + weight[m] * square / 4 - mean_spread
        values.append((total / count[m]).astype(np.float32))
    node = np.repeat(centres, [len(triples) for triples in values])
    return SectionalCurvature(np.concatenate(values), node, num_nodes)

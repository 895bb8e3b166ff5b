"""Sectional curvature of a graph: its triangles compared with flat ones."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from curvlab.analysis.hyperbolicity import adjacency_matrix, distances_from
from curvlab.errors import UsageError

SOURCE_BLOCK = 512  # sources whose distances are held at a time
ENTRIES_PER_CHUNK = 4_000_000  # entries of the largest temporary array


@dataclass(frozen=True)
class SectionalCurvature:
    """Curvature `K(m; b, c)` of all triples: a node m and two of its neighbours b < c.

    `per_triple [triples]` (float32) is ordered by `node [triples]`, the node m of each.
    """

    per_triple: np.ndarray
    node: np.ndarray
    num_nodes: int

    @property
    def mean(self) -> float:
        """Mean over all triples, each counted once, so that hubs dominate."""
        return float(self.per_triple.mean(dtype=np.float64))

    @property
    def per_node(self) -> np.ndarray:
        """Mean over the triples of each node, `[nodes]`; NaN with fewer than two neighbours."""
        count = np.bincount(self.node, minlength=self.num_nodes)
        total = np.bincount(self.node, self.per_triple, self.num_nodes)
        return np.divide(total, count, out=np.full(self.num_nodes, np.nan), where=count > 0)


def sectional_curvature(edge_index: Tensor, num_nodes: int) -> SectionalCurvature:
    """Sectional curvature of all triples of a graph, from its shortest-path distances D.

    `K(m; b, c) = 1/(N-1) sum_{a != m} 1/(2 D_am) [D_am^2 + D_bc^2 / 4 - (D_ab^2 + D_ac^2) / 2]`

    for neighbours b != c of m: 0 on a line, negative in a tree, positive on a cycle. In a
    graph of several components, a runs over the component of m and N is its size. The sums
    over a are taken once per node and once per edge, never per triple.

    Source: Gu et al. 2019; FPS-T Eq. 12, which drops the weight and keeps a = m.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    degree = np.diff(adjacency.indptr)
    neighbour = adjacency.indices
    centres = np.flatnonzero(degree > 1)
    if len(centres) == 0:
        raise UsageError("sectional curvature needs a node with two neighbours; there is none.")
    owner = np.repeat(np.arange(num_nodes), degree)
    # Of each node the number of a and the sums of D_am / 2 and 1 / (2 D_am), of each edge (m, b)
    # that of D_ab^2 / (2 D_am).
    reached, constant, weight = np.zeros((3, num_nodes))
    spread = np.zeros(len(neighbour))
    chunk = max(ENTRIES_PER_CHUNK // SOURCE_BLOCK, 1)
    for first in range(0, num_nodes, SOURCE_BLOCK):
        sources = np.arange(first, min(first + SOURCE_BLOCK, num_nodes))
        distance = np.ascontiguousarray(distances_from(adjacency, sources).T, dtype=np.float32)
        counted = (distance > 0) & np.isfinite(distance)
        distance[~counted] = 0
        half_inverse = np.divide(0.5, distance, out=np.zeros_like(distance), where=counted)
        square = distance**2
        reached += counted.sum(axis=1)
        constant += distance.sum(axis=1, dtype=np.float64) / 2
        weight += half_inverse.sum(axis=1, dtype=np.float64)
        for start in range(0, len(neighbour), chunk):
            edges = slice(start, start + chunk)
            spread[edges] += np.einsum(
                "ea,ea->e", half_inverse[owner[edges]], square[neighbour[edges]]
            )
    values = []
    for m in centres:
        edges_of_node = slice(adjacency.indptr[m], adjacency.indptr[m + 1])
        near = neighbour[edges_of_node]
        b, c = np.triu_indices(degree[m], 1)
        square = 4 - 3 * adjacency[near][:, near].toarray()[b, c]  # joined ends are at distance 1
        total = (
            constant[m]
            + weight[m] * square / 4
            - (spread[edges_of_node][b] + spread[edges_of_node][c]) / 2
        )
        values.append((total / reached[m]).astype(np.float32))
    node = np.repeat(centres, [len(edges_of_node) for edges_of_node in values])
    return SectionalCurvature(np.concatenate(values), node, num_nodes)

"""Sectional curvature of a graph: how its triangles compare with flat ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from torch import Tensor

from curvlab.analysis.distances import adjacency_matrix, distance_blocks
from curvlab.errors import UsageError

SOURCE_BLOCK = 512  # sources whose distances are held at a time
ENTRIES_PER_CHUNK = 4_000_000  # entries of the largest temporary array


@dataclass(frozen=True)
class SectionalCurvature:
    """Curvature `K(m; b, c)` of all triples: a node m and two of its neighbours b < c.

    Attributes:
        adjacency: The graph, `[nodes, nodes]`; its row m lists the neighbours of m.
        others: Nodes that each node reaches, itself not counted, `[nodes]`.
        constant: Sum over a of `D_am^2 / (2 D_am)`, `[nodes]`.
        weight: Sum over a of `1 / (2 D_am)`, `[nodes]`.
        spread: Sum over a of `D_ab^2 / (2 D_am)` for each edge (m, b), `[2M]`.
    """

    adjacency: csr_array
    others: np.ndarray
    constant: np.ndarray
    weight: np.ndarray
    spread: np.ndarray

    @property
    def triples_per_node(self) -> np.ndarray:
        """Number of pairs of neighbours of each node, `[nodes]`."""
        degree = np.diff(self.adjacency.indptr).astype(np.int64)
        return degree * (degree - 1) // 2

    @property
    def per_node(self) -> np.ndarray:
        """Mean over the triples of each node, `[nodes]`; NaN with fewer than two neighbours."""
        pairs = self.triples_per_node
        degree = np.diff(self.adjacency.indptr)
        owner = np.repeat(np.arange(len(degree)), degree)
        mean_spread = np.bincount(owner, self.spread, len(degree)) / np.maximum(degree, 1)
        # Neighbours of m are at distance 1 (their pair closes a triangle) or 2.
        closed = (self.adjacency @ self.adjacency).multiply(self.adjacency).sum(axis=1) / 2
        mean_square = 4 - 3 * closed / np.maximum(pairs, 1)
        total = self.constant + self.weight * mean_square / 4 - mean_spread
        return np.where(pairs > 0, total / np.maximum(self.others, 1), np.nan)

    @property
    def mean(self) -> float:
        """Mean over all triples, each counted once, so that hubs dominate."""
        pairs = self.triples_per_node
        return float(np.nansum(self.per_node * pairs) / pairs.sum())

    def per_triple(self) -> np.ndarray:
        """The curvature of every triple, `[triples]` (float32), ordered by node."""
        return np.concatenate(list(self._per_triple_chunks()))

    def _per_triple_chunks(self) -> Iterator[np.ndarray]:
        indptr, indices = self.adjacency.indptr.astype(np.int64), self.adjacency.indices
        nodes = len(indptr) - 1
        owner = np.repeat(np.arange(nodes), np.diff(indptr))
        edge_codes = owner * nodes + indices  # ascending: rows in order, columns sorted
        edges = np.arange(len(indices))
        partners = indptr[owner + 1] - 1 - edges  # neighbours of the same node that come later
        splits = np.flatnonzero(np.diff(np.cumsum(partners) // ENTRIES_PER_CHUNK)) + 1
        for chunk in np.split(edges, splits):
            first = np.repeat(chunk, partners[chunk])
            begin = np.repeat(np.cumsum(partners[chunk]) - partners[chunk], partners[chunk])
            second = first + 1 + np.arange(len(first)) - begin
            closing = indices[first].astype(np.int64) * nodes + indices[second]
            place = np.minimum(np.searchsorted(edge_codes, closing), len(edges) - 1)
            square = np.where(edge_codes[place] == closing, 1.0, 4.0)
            m = owner[first]
            spread = (self.spread[first] + self.spread[second]) / 2
            total = self.constant[m] + self.weight[m] * square / 4 - spread
            yield (total / self.others[m]).astype(np.float32)


def sectional_curvature(edge_index: Tensor, num_nodes: int) -> SectionalCurvature:
    """Sectional curvature of all triples of a graph, from its shortest-path distances D.

    `K(m; b, c) = 1/(N-1) sum_{a != m} 1/(2 D_am) [D_am^2 + D_bc^2 / 4 - (D_ab^2 + D_ac^2) / 2]`

    for neighbours b != c of m: 0 on a line, negative in a tree, positive on a cycle. In a
    graph of several components, a runs over the component of m and N is its size. The sums
    over a are taken once per node and once per edge, never per triple.

    Source: Gu et al. 2019; FPS-T Eq. 12, which drops the weight and keeps a = m.

    Args:
        edge_index: Edges `[2, edges]`; direction, duplicates and self-loops are ignored.
        num_nodes: Number of nodes.

    Raises:
        UsageError: No node has two neighbours.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    degree = np.diff(adjacency.indptr)
    if degree.max() < 2:
        raise UsageError("sectional curvature needs a node with two neighbours; there is none.")
    owner, neighbour = np.repeat(np.arange(num_nodes), degree), adjacency.indices
    others, constant, weight = np.zeros((3, num_nodes))
    spread = np.zeros(len(neighbour))
    chunk = max(ENTRIES_PER_CHUNK // SOURCE_BLOCK, 1)
    for block in distance_blocks(adjacency, SOURCE_BLOCK):
        distance = np.ascontiguousarray(block.T, dtype=np.float32)  # [nodes, sources]
        counted = (distance > 0) & np.isfinite(distance)
        distance[~counted] = 0
        half_inverse = np.divide(0.5, distance, out=np.zeros_like(distance), where=counted)
        square = distance**2
        others += counted.sum(axis=1)
        constant += distance.sum(axis=1, dtype=np.float64) / 2
        weight += half_inverse.sum(axis=1, dtype=np.float64)
        for start in range(0, len(neighbour), chunk):
            edges = slice(start, start + chunk)
            spread[edges] += np.einsum(
                "ea,ea->e", half_inverse[owner[edges]], square[neighbour[edges]]
            )
    return SectionalCurvature(adjacency, others, constant, weight, spread)

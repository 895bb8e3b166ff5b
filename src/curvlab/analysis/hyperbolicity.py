"""Gromov hyperbolicity of a graph: how far its distances are from those of a tree."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from curvlab.analysis.distances import adjacency_matrix, distances_from
from curvlab.errors import UsageError

ENTRIES_PER_CHUNK = 2_000_000  # combinations of two pairs compared at a time

FURTHER_SOURCES = 100
"""Nodes whose eccentricities narrow the bounds of the diameter, at most, beyond the random ones."""


@dataclass(frozen=True)
class Hyperbolicity:
    """Gromov's delta of a graph, or bounds of it, in numbers of edges.

    Attributes:
        delta: A multiple of 1/2; 0 for a tree. A lower bound if not exact.
        upper: Upper bound, half that of the diameter; delta if exact.
        exact: Whether no node was left out.
        nodes: Number of nodes whose quadruples were compared.
        diameter: Lower and upper bound of the graph's diameter; mostly equal.
    """

    delta: float
    upper: float
    exact: bool
    nodes: int
    diameter: tuple[int, int]

    @property
    def diameter_text(self) -> str:
        """The diameter, or its bounds."""
        low, high = self.diameter
        return f"{low}" if low == high else f"{low} to {high}"


def hyperbolicity(
    edge_index: Tensor, num_nodes: int, max_nodes: int = 300, seed: int = 0
) -> Hyperbolicity:
    """Gromov hyperbolicity of the largest component, by the four-point condition.

    `delta = max (S1 - S2) / 2` over all quadruples, S1 >= S2 >= S3 being its three sums
    `d(x,y) + d(v,w)`, `d(x,v) + d(y,w)`, `d(x,w) + d(y,v)`. With more than `max_nodes` nodes
    a random set of that many is compared, by their distances in the whole graph: a lower bound.
    Then the upper bound is half the diameter, which is found from eccentricities.

    Args:
        edge_index: Edges `[2, edges]`; direction, duplicates and self-loops are ignored.
        num_nodes: Number of nodes.
        max_nodes: Largest number of nodes to compare; time grows with its fourth power.
        seed: Seed of the random set.

    Raises:
        UsageError: The graph has no edges, or `max_nodes` is less than 4.
    """
    if max_nodes < 4:
        raise UsageError(f"max_nodes={max_nodes} is too small: a quadruple has 4 nodes.")
    adjacency = adjacency_matrix(edge_index, num_nodes)
    _, component = connected_components(adjacency, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    exact = len(nodes) <= max_nodes
    if not exact:
        nodes = np.random.default_rng(seed).choice(nodes, max_nodes, replace=False)
    distance = distances_from(adjacency, nodes)
    delta = four_point_delta(distance[:, nodes].astype(np.int32))
    diameter = _diameter(adjacency, distance)
    upper = delta if exact else diameter[1] / 2
    return Hyperbolicity(delta, upper, exact, len(nodes), diameter)


def _diameter(adjacency: csr_array, distance: np.ndarray) -> tuple[int, int]:
    """Bounds of the diameter from distances `[sources, nodes]` of some nodes to all.

    The eccentricity of a node is at most that of another and the distance between them. The node of
    the largest bound is the next source until the bounds meet, or for 100 sources.

    Source: Takes and Kosters 2011, "Determining the diameter of small world networks".
    """
    reached = np.flatnonzero(np.isfinite(distance[0]))
    farthest = distance[:, reached].max(axis=1)
    low, bounds = farthest.max(), (distance[:, reached] + farthest[:, None]).min(axis=0)
    for _ in range(FURTHER_SOURCES):
        if bounds.max() <= low:
            break
        source = bounds.argmax()
        row = distances_from(adjacency, reached[[source]])[0, reached]
        low, bounds = max(low, row.max()), np.minimum(bounds, row + row.max())
        bounds[source] = row.max()
    return int(low), int(max(low, bounds.max()))


def four_point_delta(distance: np.ndarray) -> float:
    """Gromov's delta of finitely many points' distances `[points, points]`, whole numbers, exactly.

    Only pairs that no third point prolongs can attain the maximum (moving one end of the pair
    along the prolongation never lowers S1 - S2), and delta is at most half the smaller
    distance of the two pairs: longest pairs first, it stops when none can improve on it
    (Cohen, Coudert and Lancin, 2015).
    """
    x, y = np.nonzero(np.triu(_far_apart(distance), k=1))
    order = np.argsort(-distance[x, y], kind="stable")
    x, y = x[order], y[order]
    length = distance[x, y]
    twice_delta, start = 0, 0
    while start < len(x) and length[start] > twice_delta:
        stop = start + max(ENTRIES_PER_CHUNK // (start + 1024), 1)
        v, w = x[:stop], y[:stop]
        from_a, from_b = distance[x[start:stop]], distance[y[start:stop]]
        crossed = np.maximum(
            from_a.take(v, axis=1) + from_b.take(w, axis=1),
            from_a.take(w, axis=1) + from_b.take(v, axis=1),
        )
        straight = length[start:stop, None] + length[:stop]
        twice_delta = max(twice_delta, int((straight - crossed).max()))
        start = stop
    return twice_delta / 2


def _far_apart(distance: np.ndarray) -> np.ndarray:
    """Pairs that no third point prolongs at either end, `[points, points]` boolean."""
    far = np.ones(distance.shape, dtype=bool)
    others = (
        distance > 0
    )  # a point at distance 0 prolongs nothing, and two would rule each other out
    for point, row in enumerate(distance):
        prolonged = (row[None, :] == row[:, None] + distance) & others
        far[point] &= ~prolonged.any(axis=1)
    return far & far.T

"""Gromov hyperbolicity of a graph: how far its distances are from those of a tree."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from torch import Tensor

from curvlab.analysis.distances import adjacency_matrix, distances_from, largest_component
from curvlab.errors import UsageError
from curvlab.statistics import summarise

ENTRIES_PER_CHUNK = 2_000_000  # combinations of two pairs compared at a time

QUADRUPLES = 20_000
"""Drawn for the mean of delta."""

GROUPS, GROUP_SIZE = 20, 50
"""Random nodes that quadruples are drawn from, in groups, in a graph of more nodes than these."""

BASES = 8
"""Roots of Gromov trees that are tried."""


@dataclass(frozen=True)
class Hyperbolicity:
    """Gromov's delta of a graph, or bounds of it, in numbers of edges.

    Attributes:
        delta: A multiple of 1/2; 0 for a tree. A lower bound if not exact.
        upper: Upper bound, half the diameter; delta if exact.
        exact: Whether no node was left out.
        nodes: Number of nodes whose quadruples were compared.
        diameter: Of the largest component.
    """

    delta: float
    upper: float
    exact: bool
    nodes: int
    diameter: int


def hyperbolicity(
    edge_index: Tensor, num_nodes: int, max_nodes: int = 300, seed: int = 0
) -> Hyperbolicity:
    """Gromov hyperbolicity of the largest component, by the four-point condition.

    `delta = max (S1 - S2) / 2` over all quadruples, S1 >= S2 >= S3 being its three sums
    `d(x,y) + d(v,w)`, `d(x,v) + d(y,w)`, `d(x,w) + d(y,v)`. With more than `max_nodes` nodes
    a random set of that many is compared, by their distances in the whole graph: a lower bound.
    Then the upper bound is half the diameter.

    Args:
        edge_index: Edges `[2, edges]`; direction, duplicates and self-loops are ignored.
        num_nodes: Number of nodes.
        max_nodes: Largest number of nodes to compare; time grows with its fourth power.
        seed: Seed of the random set.

    Raises:
        UsageError: The graph has no edges, or `max_nodes` is less than 4.
    """
    import networkx as nx

    if max_nodes < 4:
        raise UsageError(f"max_nodes={max_nodes} is too small: a quadruple has 4 nodes.")
    adjacency = adjacency_matrix(edge_index, num_nodes)
    component, nodes, distance = _sample(adjacency, max_nodes, np.random.default_rng(seed))
    exact = len(nodes) == len(component)
    delta = four_point_delta(distance.astype(np.int32))
    connected = nx.from_scipy_sparse_array(adjacency[component][:, component])
    diameter = nx.diameter(connected, usebounds=True)
    upper = delta if exact else diameter / 2
    return Hyperbolicity(delta, upper, exact, len(nodes), diameter)


def four_point_delta(distance: np.ndarray) -> float:
    """Gromov's delta of finitely many points' distances `[points, points]`, whole numbers, exactly.

    Only pairs that no third point prolongs can attain the maximum (moving one end of the pair
    along the prolongation never lowers S1 - S2), and delta is at most half the smaller
    distance of the two pairs: longest pairs first, it stops when none can improve on it
    (Cohen, Coudert and Lancin, 2015).
    """
    far = np.ones(distance.shape, dtype=bool)  # pairs that no third point prolongs at one end
    others = distance > 0  # else two points at distance 0 would rule each other out
    for point, row in enumerate(distance):
        prolonged = (row[None, :] == row[:, None] + distance) & others
        far[point] &= ~prolonged.any(axis=1)
    x, y = np.nonzero(np.triu(far & far.T, k=1))
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


@dataclass(frozen=True)
class MeanDelta:
    """The four-point delta of a random quadruple: `mean`, and half of its 95 % interval."""

    mean: float
    pm: float


def mean_delta(adjacency: csr_array, seed: int = 0) -> MeanDelta:
    """Mean over random quadruples of `(S1 - S2) / 2`, in edges, see `hyperbolicity`.

    In a graph of more than 1,000 nodes the quadruples are within 20 random groups of 50 nodes, and
    the interval is Student's over the groups' means: nodes and quadruples are both drawn.

    Source: Albert, DasGupta and Mobasheri 2014, arXiv:1403.1228, for means instead of the worst.
    """
    nodes, generator = largest_component(adjacency), np.random.default_rng(seed)
    if len(nodes) < 4:
        return MeanDelta(0.0, 0.0)
    small = len(nodes) <= GROUPS * GROUP_SIZE
    groups = [nodes] if small else generator.choice(nodes, (GROUPS, GROUP_SIZE), replace=False)
    deltas = []
    for group in groups:
        distance = distances_from(adjacency, group)[:, group]
        count = QUADRUPLES // len(groups)
        drawn = [generator.permutation(len(group))[:4] for _ in range(count)]
        x, y, v, w = np.array(drawn).T
        pairings = ((x, y, v, w), (x, v, y, w), (x, w, y, v))
        sums = np.sort([distance[a, b] + distance[c, d] for a, b, c, d in pairings], axis=0)
        deltas.append((sums[2] - sums[1]) / 2)
    summary = summarise(deltas[0] if small else [delta.mean() for delta in deltas])
    return MeanDelta(summary.mean, summary.student_pm)


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


def tree_distortion(adjacency: csr_array, max_nodes: int = 600, seed: int = 0) -> TreeDistortion:
    """Distortion of the best of some Gromov trees of the largest component.

    Args:
        adjacency: of the graph, symmetric.
        max_nodes: of a larger component, so many random nodes are compared, by their distances in
            the whole graph.
        seed: of these nodes, and of the roots that are tried.
    """
    generator = np.random.default_rng(seed)
    _, nodes, distance = _sample(adjacency, max_nodes, generator)
    others = generator.choice(len(nodes), min(BASES - 1, len(nodes)), replace=False)
    upper = np.triu_indices(len(nodes), k=1)
    errors = (
        np.abs(gromov_tree(distance, int(base))[upper] / distance[upper] - 1)
        for base in (distance.sum(axis=1).argmin(), *others)
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
    sums = distance[base][:, None] + distance[base]
    product = (sums - distance) / 2
    # Single linkage joins by the smallest value: the largest products first.
    gap = squareform(product.max() - product, checks=False)
    best = product.max() - squareform(cophenet(linkage(gap, method="single")))
    tree = sums - 2 * best
    np.fill_diagonal(tree, 0)
    return tree


def _sample(
    adjacency: csr_array, most: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest component, all or `most` random nodes of it, and the distances of these."""
    component = nodes = largest_component(adjacency)
    if len(component) > most:
        nodes = generator.choice(component, most, replace=False)
    return component, nodes, distances_from(adjacency, nodes)[:, nodes]

"""Gromov hyperbolicity of a graph: the difference of its distances from a tree's."""

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_scipy_sparse_matrix, to_undirected

from curvlab.errors import UsageError
from curvlab.statistics import summarise

EXACT = 300  # largest number of nodes with all quadruples; time grows with the fourth power
ENTRIES_PER_CHUNK = 2_000_000  # combinations of two pairs compared at a time

QUADRUPLES = 20_000  # number of random quadruples for the mean of delta
GROUPS = 20
GROUP_SIZE = 50
"""Number and size of the groups of random nodes with the quadruples of a larger graph."""


def adjacency_matrix(edge_index: Tensor, num_nodes: int) -> csr_array:
    """Symmetric adjacency of ones `[nodes, nodes]` without self-loops, column indices sorted.

    Direction, duplicates and self-loops of the edges `[2, edges]` are ignored.
    """
    edges, _ = remove_self_loops(edge_index.cpu())
    if edges.shape[1] == 0:
        raise UsageError("a graph without edges has no curvature or hyperbolicity.")
    edges = to_undirected(edges, num_nodes=num_nodes)
    return csr_array(to_scipy_sparse_matrix(edges, num_nodes=num_nodes))


def largest_components(adjacency: csr_array) -> list[csr_array]:
    """Adjacency of the largest connected component, or of all components of its size."""
    _, component = connected_components(adjacency, directed=False)
    sizes = np.bincount(component)
    size = sizes.max()
    nodes = np.argsort(component, kind="stable")
    nodes = nodes[sizes[component[nodes]] == size]
    blocks = adjacency[nodes][:, nodes]
    starts = range(0, len(nodes), size)
    return [blocks[i : i + size, i : i + size] for i in starts]


def shortest_distances(adjacency: csr_array, sources: np.ndarray) -> np.ndarray:
    """Numbers of edges `[sources, nodes]` from the sources to all nodes; inf if unreachable."""
    return dijkstra(adjacency, unweighted=True, indices=sources)


def hyperbolicity(edge_index: Tensor, num_nodes: int, seed: int = 0) -> tuple[float, float, int]:
    """Bounds of the Gromov hyperbolicity of the largest component, and its diameter.

    For several equally large components, each number is the largest of all components, so that the
    result does not depend on the order of the nodes.

    `delta = max (S1 - S2) / 2` over all quadruples, with the sums `S1 >= S2 >= S3` of a quadruple's
    distances `d(x,y) + d(v,w)`, `d(x,v) + d(y,w)`, `d(x,w) + d(y,v)`. Delta is a multiple of 1/2,
    and 0 for a tree. Up to 300 nodes both bounds are delta. For more nodes the lower bound is the
    delta of 300 random nodes, with distances in the whole graph, and the upper bound is half the
    diameter.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    components = largest_components(adjacency)
    different = dict[bytes, csr_array]()
    for component in components:
        key = component.indptr.tobytes() + component.indices.tobytes()
        different[key] = component
    parts = list(different.values())
    diameters = np.array([_diameter(part) for part in parts])
    delta = 0.0
    for i in np.argsort(-diameters, kind="stable"):
        upper_bound = diameters[i] / 2
        if upper_bound > delta:
            delta = max(delta, _sampled_delta(parts[i], seed))
    diameter = int(diameters.max())
    if components[0].shape[0] <= EXACT:
        return delta, delta, diameter
    return delta, diameter / 2, diameter


def _diameter(component: csr_array) -> int:
    if component.shape[0] <= EXACT:
        return int(shortest_distances(component, np.arange(component.shape[0])).max())
    return int(nx.diameter(nx.from_scipy_sparse_array(component), usebounds=True))


def _sampled_delta(component: csr_array, seed: int) -> float:
    """Delta of a component, or of a random set of its nodes; 0 for a tree."""
    size = component.shape[0]
    if component.nnz == 2 * (size - 1):
        return 0.0
    nodes = np.arange(size)
    if size > EXACT:
        nodes = np.random.default_rng(seed).choice(size, EXACT, replace=False)
    return four_point_delta(shortest_distances(component, nodes)[:, nodes].astype(np.int32))


def four_point_delta(distance: np.ndarray) -> float:
    """Gromov's delta of whole distances `[points, points]`, exactly.

    Only maximal pairs can attain the maximum: no third point prolongs their path at one end, since
    moving an end along the prolongation never lowers S1 - S2. Delta is at most half the smaller
    distance of the two pairs. The search begins with the longest pairs and stops when no pair can
    raise delta (Cohen, Coudert and Lancin, 2015).
    """
    maximal = np.ones(distance.shape, dtype=bool)
    distinct = distance > 0  # two points at distance 0 do not prolong each other's pairs
    for point, row in enumerate(distance):
        prolongs = (row[None, :] == row[:, None] + distance) & distinct
        maximal[point] &= ~prolongs.any(axis=1)
    x, y = np.nonzero(np.triu(maximal & maximal.T, k=1))
    order = np.argsort(-distance[x, y], kind="stable")
    x = x[order]
    y = y[order]
    length = distance[x, y]
    twice_delta = 0
    start = 0
    while start < len(x) and length[start] > twice_delta:
        stop = start + max(ENTRIES_PER_CHUNK // (start + 1024), 1)
        v = x[:stop]
        w = y[:stop]
        from_x = distance[x[start:stop]]
        from_y = distance[y[start:stop]]
        crossed = np.maximum(
            from_x.take(v, axis=1) + from_y.take(w, axis=1),
            from_x.take(w, axis=1) + from_y.take(v, axis=1),
        )
        straight = length[start:stop, None] + length[:stop]
        twice_delta = max(twice_delta, int((straight - crossed).max()))
        start = stop
    return twice_delta / 2


def mean_delta(adjacency: csr_array, seed: int = 0) -> tuple[float, float]:
    """Mean of `(S1 - S2) / 2` over random quadruples, and the half width of its 95 % interval.

    The quadruples are drawn from the largest component. Of several equally large components at
    most 20 random ones are used. In a component of more than 1,000 nodes, the nodes of a quadruple
    belong to one of 20 random groups of 50 nodes. Student's interval is over the quadruples, or
    over the groups' means if groups or components are random, too.

    Source: Albert, DasGupta and Mobasheri 2014, arXiv:1403.1228, for the mean.
    """
    components = largest_components(adjacency)
    generator = np.random.default_rng(seed)
    size = components[0].shape[0]
    if size < 4:
        return 0.0, 0.0
    has_random_groups = len(components) > GROUPS
    if has_random_groups:
        indices = generator.choice(len(components), GROUPS, replace=False)
        components = [components[i] for i in indices]
    groups = [(component, np.arange(size)) for component in components]
    if size > GROUPS * GROUP_SIZE:
        has_random_groups = True
        groups_per_component = -(-GROUPS // len(components))
        groups = []
        for component in components:
            shape = groups_per_component, GROUP_SIZE
            nodes = generator.choice(size, shape, replace=False)
            groups += [(component, group) for group in nodes]
    count = QUADRUPLES // len(groups)
    deltas = [_random_deltas(component, nodes, count, generator) for component, nodes in groups]
    if has_random_groups:
        summary = summarise([delta.mean() for delta in deltas])
    else:
        summary = summarise(list(np.concatenate(deltas)))
    return summary.mean, summary.student_pm


def _random_deltas(
    component: csr_array, nodes: np.ndarray, count: int, generator: np.random.Generator
) -> np.ndarray:
    """`(S1 - S2) / 2` of random quadruples of some nodes, `[count]`."""
    distance = shortest_distances(component, nodes)[:, nodes]
    quadruples = [generator.permutation(len(nodes))[:4] for _ in range(count)]
    x, y, v, w = np.array(quadruples).T
    sums = np.sort(
        [
            distance[x, y] + distance[v, w],
            distance[x, v] + distance[y, w],
            distance[x, w] + distance[y, v],
        ],
        axis=0,
    )
    return (sums[2] - sums[1]) / 2

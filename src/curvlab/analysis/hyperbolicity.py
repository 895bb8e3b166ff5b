"""Gromov hyperbolicity of a graph: how far its distances are from those of a tree."""

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor
from torch_geometric.utils import remove_self_loops, to_scipy_sparse_matrix, to_undirected

from curvlab.errors import UsageError
from curvlab.statistics import summarise

EXACT = 300  # nodes up to which every quadruple is compared; time grows with their fourth power
ENTRIES_PER_CHUNK = 2_000_000  # combinations of two pairs compared at a time

QUADRUPLES = 20_000  # drawn for the mean of delta
GROUPS = 20
GROUP_SIZE = 50
"""Random nodes that quadruples are drawn from, in groups, in a graph of more nodes than these."""


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
    """Adjacency of the largest connected component, or of each of equally large ones."""
    _, component = connected_components(adjacency, directed=False)
    sizes = np.bincount(component)
    size = sizes.max()
    nodes = np.argsort(component, kind="stable")
    nodes = nodes[sizes[component[nodes]] == size]
    blocks = adjacency[nodes][:, nodes]
    return [blocks[i : i + size, i : i + size] for i in range(0, len(nodes), size)]


def distances_from(adjacency: csr_array, sources: np.ndarray) -> np.ndarray:
    """Numbers of edges `[sources, nodes]` from the sources to all nodes; inf if unreachable."""
    return dijkstra(adjacency, unweighted=True, indices=sources)


def hyperbolicity(edge_index: Tensor, num_nodes: int, seed: int = 0) -> tuple[float, float, int]:
    """Bounds of the Gromov hyperbolicity of the largest component, and its diameter.

    Of several equally large components each of the three numbers is the largest, so that the order
    of the nodes chooses none of them.

    `delta = max (S1 - S2) / 2` over all quadruples, S1 >= S2 >= S3 being its three sums
    `d(x,y) + d(v,w)`, `d(x,v) + d(y,w)`, `d(x,w) + d(y,v)`: a multiple of 1/2, 0 for a tree. Up to
    300 nodes both bounds are delta. Of more a random set of 300 is compared, by their distances in
    the whole graph; then the upper bound is half the diameter.
    """
    adjacency = adjacency_matrix(edge_index, num_nodes)
    components = largest_components(adjacency)
    distinct = {part.indptr.tobytes() + part.indices.tobytes(): part for part in components}
    parts = list(distinct.values())
    diameters = np.array([_diameter(part) for part in parts])
    delta = 0.0
    for place in np.argsort(-diameters, kind="stable"):
        if diameters[place] / 2 > delta:  # which delta is at most
            delta = max(delta, _sampled_delta(parts[place], seed))
    diameter = int(diameters.max())
    is_exact = components[0].shape[0] <= EXACT
    return delta, delta if is_exact else diameter / 2, diameter


def _diameter(component: csr_array) -> int:
    if component.shape[0] <= EXACT:
        return int(distances_from(component, np.arange(component.shape[0])).max())
    return int(nx.diameter(nx.from_scipy_sparse_array(component), usebounds=True))


def _sampled_delta(component: csr_array, seed: int) -> float:
    """Delta of the component, or of a random set of its nodes; a tree's is 0."""
    size = component.shape[0]
    if component.nnz == 2 * (size - 1):
        return 0.0
    nodes = np.arange(size)
    if size > EXACT:
        nodes = np.random.default_rng(seed).choice(size, EXACT, replace=False)
    return four_point_delta(distances_from(component, nodes)[:, nodes].astype(np.int32))


def four_point_delta(distance: np.ndarray) -> float:
    """Gromov's delta of finitely many points' distances `[points, points]`, whole numbers, exactly.

    Only pairs that no third point prolongs can attain the maximum (moving one end of the pair
    along the prolongation never lowers S1 - S2), and delta is at most half the smaller
    distance of the two pairs: longest pairs first, it stops when none can improve on it
    (Cohen, Coudert and Lancin, 2015).
    """
    far = np.ones(distance.shape, dtype=bool)  # pairs that no third point prolongs at one end
    distinct = distance > 0  # else two points at distance 0 would rule each other out
    for point, row in enumerate(distance):
        prolonged = (row[None, :] == row[:, None] + distance) & distinct
        far[point] &= ~prolonged.any(axis=1)
    x, y = np.nonzero(np.triu(far & far.T, k=1))
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
    """Mean over random quadruples of `(S1 - S2) / 2`, in edges, and half of its 95 % interval.

    The quadruples are of the largest component, or of equally large ones, of 20 random ones if
    there are more. In a component of more than 1,000 nodes they are within 20 random groups of 50
    nodes. The interval is Student's over the quadruples, or over the groups' means where groups or
    components are drawn, too.

    Source: Albert, DasGupta and Mobasheri 2014, arXiv:1403.1228, for means instead of the worst.
    """
    components = largest_components(adjacency)
    generator = np.random.default_rng(seed)
    size = components[0].shape[0]
    if size < 4:
        return 0.0, 0.0
    is_drawn = len(components) > GROUPS
    if is_drawn:
        places = generator.choice(len(components), GROUPS, replace=False)
        components = [components[place] for place in places]
    groups = [(part, np.arange(size)) for part in components]
    if size > GROUPS * GROUP_SIZE:
        is_drawn = True
        shape = -(-GROUPS // len(components)), GROUP_SIZE
        groups = [
            (part, nodes)
            for part in components
            for nodes in generator.choice(size, shape, replace=False)
        ]
    deltas = []
    for part, group in groups:
        distance = distances_from(part, group)[:, group]
        count = QUADRUPLES // len(groups)
        drawn = [generator.permutation(len(group))[:4] for _ in range(count)]
        x, y, v, w = np.array(drawn).T
        pairings = ((x, y, v, w), (x, v, y, w), (x, w, y, v))
        sums = np.sort([distance[a, b] + distance[c, d] for a, b, c, d in pairings], axis=0)
        deltas.append((sums[2] - sums[1]) / 2)
    every = [delta.mean() for delta in deltas] if is_drawn else list(np.concatenate(deltas))
    summary = summarise(every)
    return summary.mean, summary.student_pm

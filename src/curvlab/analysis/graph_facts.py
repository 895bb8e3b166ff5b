"""What a graph looks like: the numbers by which one guesses the space that it fits into."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from curvlab.analysis.best_tree import TreeDistortion, tree_distortion
from curvlab.analysis.distances import adjacency_matrix, distances_from
from curvlab.analysis.hyperbolicity import Hyperbolicity, hyperbolicity
from curvlab.analysis.sectional_curvature import sectional_curvature
from curvlab.errors import UsageError
from curvlab.statistics import summarise

QUADRUPLES = 20_000
"""Drawn for the mean of delta."""

GROUPS, GROUP_SIZE = 20, 50
"""Random nodes that quadruples are drawn from, in groups, in a graph of more nodes than these."""

TAIL = 0.1
"""Share of the nodes that are the tail of the degrees."""


@dataclass(frozen=True)
class MeanDelta:
    """The four-point delta of a random quadruple: `mean`, and half of its 95 % interval."""

    mean: float
    pm: float


@dataclass(frozen=True)
class GraphFacts:
    """Shape of a graph.

    Attributes:
        nodes: number of nodes.
        edges: number of undirected edges.
        components: number of connected components.
        mean_degree: mean number of neighbours.
        max_degree: largest number of neighbours.
        tail_exponent: of the power law that the largest degrees fit best, None without a tail.
        clustering: mean share of a node's pairs of neighbours that are joined.
        hyperbolicity: Gromov's delta, the worst quadruple.
        mean_delta: delta of a random quadruple.
        tree: distortion of the best Gromov tree.
        curvature: mean sectional curvature of a node, None if no node has two neighbours.
        curvature_counts: histogram of the nodes' sectional curvature.
        curvature_edges: ends of its bins, one more.
        homophily: share of edges within a class, None without classes.
        chance_homophily: the same for edges between nodes drawn by their degrees.
    """

    nodes: int
    edges: int
    components: int
    mean_degree: float
    max_degree: int
    tail_exponent: float | None
    clustering: float
    hyperbolicity: Hyperbolicity
    mean_delta: MeanDelta
    tree: TreeDistortion
    curvature: float | None
    curvature_counts: tuple[int, ...]
    curvature_edges: tuple[float, ...]
    homophily: float | None
    chance_homophily: float | None


def graph_facts(graph: Data, seed: int = 0) -> GraphFacts:
    """Measure a graph; of a large one, samples.

    Args:
        graph: `edge_index [2, edges]`, `num_nodes` and, if there are classes, `y [nodes]`.
        seed: of what is sampled.

    Raises:
        UsageError: The graph has no edges.
    """
    nodes = int(graph.num_nodes or 0)
    adjacency = adjacency_matrix(graph.edge_index, nodes)
    degrees = np.diff(adjacency.indptr)
    curvature = _node_curvature(graph, nodes)
    counts, ends = np.histogram(curvature, bins=20) if len(curvature) else ((), ())
    within, chance = _homophily(graph, degrees)
    return GraphFacts(
        nodes=nodes,
        edges=adjacency.nnz // 2,
        components=int(connected_components(adjacency, directed=False)[0]),
        mean_degree=float(degrees.mean()),
        max_degree=int(degrees.max()),
        tail_exponent=tail_exponent(degrees),
        clustering=clustering(adjacency),
        hyperbolicity=hyperbolicity(graph.edge_index, nodes, seed=seed),
        mean_delta=mean_delta(adjacency, seed),
        tree=tree_distortion(graph.edge_index, nodes, seed=seed),
        curvature=float(curvature.mean()) if len(curvature) else None,
        curvature_counts=tuple(int(count) for count in counts),
        curvature_edges=tuple(float(end) for end in ends),
        homophily=within,
        chance_homophily=chance,
    )


def mean_delta(adjacency: csr_array, seed: int = 0) -> MeanDelta:
    """Mean over random quadruples of `(S1 - S2) / 2`, in edges, see `hyperbolicity`.

    In a graph of more than 1,000 nodes the quadruples are within 20 random groups of 50 nodes, and
    the interval is Student's over the groups' means: nodes and quadruples are both drawn.

    Source: Albert, DasGupta and Mobasheri 2014, arXiv:1403.1228, for means instead of the worst.
    """
    _, component = connected_components(adjacency, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    generator = np.random.default_rng(seed)
    if len(nodes) < 4:
        return MeanDelta(0.0, 0.0)
    if len(nodes) <= GROUPS * GROUP_SIZE:
        delta = _deltas(distances_from(adjacency, nodes)[:, nodes], QUADRUPLES, generator)
        return MeanDelta(float(delta.mean()), float(1.96 * delta.std(ddof=1) / sqrt(len(delta))))
    groups = generator.choice(nodes, (GROUPS, GROUP_SIZE), replace=False)
    means = [
        _deltas(distances_from(adjacency, group)[:, group], QUADRUPLES // GROUPS, generator).mean()
        for group in groups
    ]
    summary = summarise(means)
    return MeanDelta(summary.mean, summary.student_pm)


def _deltas(distance: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Delta of random quadruples of different nodes, from distances `[nodes, nodes]`."""
    x, y, v, w = np.array([generator.permutation(len(distance))[:4] for _ in range(count)]).T
    sums = np.sort(
        [
            distance[x, y] + distance[v, w],
            distance[x, v] + distance[y, w],
            distance[x, w] + distance[y, v],
        ],
        axis=0,
    )
    return (sums[2] - sums[1]) / 2


def tail_exponent(degrees: np.ndarray) -> float | None:
    """Exponent of `p(d) ~ d^-a` of the largest degrees, by maximum likelihood.

    `a = 1 + n / sum ln(d / (d_min - 1/2))` over the n degrees of at least `d_min`, the smallest
    degree of the tenth of the nodes with the largest. None where these are all alike.

    Source: Clauset, Shalizi and Newman 2009, arXiv:0706.1062, Eq. 3.7.
    """
    least = max(int(np.quantile(degrees, 1 - TAIL, method="higher")), 1)
    tail = degrees[degrees >= least]
    if len(tail) == 0 or tail.max() == tail.min():
        return None
    return float(1 + len(tail) / np.log(tail / (least - 0.5)).sum())


def clustering(adjacency: csr_array) -> float:
    """Mean share of a node's pairs of neighbours that are joined; 0 with fewer than two.

    Source: Watts and Strogatz 1998.
    """
    degrees = np.diff(adjacency.indptr)
    closed = np.asarray((adjacency @ adjacency).multiply(adjacency).sum(axis=1)).ravel()
    pairs = degrees * (degrees - 1)
    return float((closed / np.maximum(pairs, 1)).mean())


def _node_curvature(graph: Data, nodes: int) -> np.ndarray:
    """Sectional curvature of the nodes that have one."""
    try:
        per_node = sectional_curvature(graph.edge_index, nodes).per_node
    except UsageError:
        return np.empty(0)
    return per_node[np.isfinite(per_node)]


def _homophily(graph: Data, degrees: np.ndarray) -> tuple[float | None, float | None]:
    """Share of edges within a class, and what chance makes of it."""
    y = graph.get("y")
    if y is None or y.dim() != 1 or y.is_floating_point():
        return None, None
    source, target = graph.edge_index
    known = (y[source] >= 0) & (y[target] >= 0)
    within = (y[source] == y[target])[known].double().mean()
    labels = y.cpu().numpy()
    shares = np.bincount(labels[labels >= 0], degrees[labels >= 0])
    return float(within), float(((shares / shares.sum()) ** 2).sum())

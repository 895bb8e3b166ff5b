"""Shape of a graph: the numbers by which one guesses the space that it fits into."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from curvlab.analysis.distances import adjacency_matrix
from curvlab.analysis.hyperbolicity import (
    Hyperbolicity,
    MeanDelta,
    TreeDistortion,
    hyperbolicity,
    mean_delta,
    tree_distortion,
)
from curvlab.analysis.sectional_curvature import sectional_curvature

TAIL = 0.1
"""Share of the nodes that are the tail of the degrees."""


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
    curvature, counts, ends = np.empty(0), np.empty(0, int), np.empty(0)
    if degrees.max() > 1:
        curvature = sectional_curvature(graph.edge_index, nodes).per_node
        curvature = curvature[np.isfinite(curvature)]
        counts, ends = np.histogram(curvature, bins=20)
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
        tree=tree_distortion(adjacency, seed=seed),
        curvature=float(curvature.mean()) if len(curvature) else None,
        curvature_counts=tuple(counts.tolist()),
        curvature_edges=tuple(ends.tolist()),
        homophily=within,
        chance_homophily=chance,
    )


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
    closed = (adjacency @ adjacency).multiply(adjacency).sum(axis=1)
    return float((closed / np.maximum(degrees * (degrees - 1), 1)).mean())


def _homophily(graph: Data, degrees: np.ndarray) -> tuple[float | None, float | None]:
    """Share of edges within a class, and the share by chance."""
    y = graph.get("y")
    if y is None or y.dim() != 1 or y.is_floating_point():
        return None, None
    source, target = y[graph.edge_index]
    within = (source == target)[(source >= 0) & (target >= 0)].double().mean()
    labels = y.cpu().numpy()
    shares = np.bincount(labels[labels >= 0], degrees[labels >= 0])
    return float(within), float(((shares / shares.sum()) ** 2).sum())

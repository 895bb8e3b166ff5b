"""The shape of a graph: numbers that hint at the space that fits it."""

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from curvlab.analysis.hyperbolicity import EXACT, adjacency_matrix, hyperbolicity, mean_delta
from curvlab.analysis.sectional_curvature import sectional_curvature

TAIL = 0.1  # share of the nodes that are the tail of the degrees


@dataclass(frozen=True)
class GraphFacts:
    """Shape of a graph.

    Equal bounds `delta` are exact; `mean_delta` has half of its 95 % interval; `chance_homophily`
    is that of edges between nodes drawn by their degrees.
    """

    nodes: int
    edges: int
    components: int
    mean_degree: float
    max_degree: int
    tail_exponent: float | None
    clustering: float
    delta: tuple[float, float]
    diameter: int
    mean_delta: tuple[float, float]
    curvature: float | None
    curvature_counts: tuple[int, ...]
    curvature_edges: tuple[float, ...]
    homophily: float | None
    chance_homophily: float | None

    def lines(self) -> Iterator[str]:
        """Describe the graph."""
        low, high = self.delta
        parts = f", {self.components} components" if self.components > 1 else ""
        tail = f", tail exponent {self.tail_exponent:.1f}" if self.tail_exponent else ""
        yield (
            f"{self.nodes:,} nodes, {self.edges:,} edges{parts}; degree {self.mean_degree:.1f} on "
            f"average, {self.max_degree} at most{tail}"
        )
        bounds = f"{low:g} to {high:g} (that of {EXACT} random nodes to half the diameter)"
        worst = f"{low:g} (exact)" if low == high else bounds
        yield (
            f"Gromov's delta {worst}, of a random quadruple {self.mean_delta[0]:.3f} "
            f"± {self.mean_delta[1]:.3f}; diameter {self.diameter}; 0 is a tree"
        )
        if self.curvature is not None:
            yield (
                f"mean sectional curvature of the nodes {self.curvature:+.3f} (a tree's is "
                "negative, a cycle's positive)"
            )
        yield f"clustering {self.clustering:.3f}"
        if self.homophily is not None:
            yield f"homophily {self.homophily:.3f}, {self.chance_homophily:.3f} by chance"


def graph_facts(graph: Data, seed: int = 0) -> GraphFacts:
    """Measure a graph with `edge_index` and optionally classes `y`; large graphs by samples."""
    nodes = int(graph.num_nodes or 0)
    adjacency = adjacency_matrix(graph.edge_index, nodes)
    network = nx.from_scipy_sparse_array(adjacency)
    degrees = np.diff(adjacency.indptr)
    curvature = np.empty(0)
    counts = np.empty(0, int)
    ends = np.empty(0)
    if degrees.max() > 1:
        curvature = sectional_curvature(graph.edge_index, nodes).per_node
        curvature = curvature[np.isfinite(curvature)]
        counts, ends = np.histogram(curvature, bins=20)
    *delta, diameter = hyperbolicity(graph.edge_index, nodes, seed)
    within = chance = None
    y = graph.get("y")
    if y is not None and y.dim() == 1 and not y.is_floating_point():
        within = homophily(graph.edge_index[:, (y[graph.edge_index] >= 0).all(0)], y)
        labelled = (y >= 0).cpu().numpy()
        shares = np.bincount(y.cpu().numpy()[labelled], degrees[labelled])
        chance = float(((shares / shares.sum()) ** 2).sum())
    return GraphFacts(
        nodes=nodes,
        edges=adjacency.nnz // 2,
        components=nx.number_connected_components(network),
        mean_degree=float(degrees.mean()),
        max_degree=int(degrees.max()),
        tail_exponent=tail_exponent(degrees),
        clustering=float(nx.average_clustering(network)),
        delta=(delta[0], delta[1]),
        diameter=diameter,
        mean_delta=mean_delta(adjacency, seed),
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

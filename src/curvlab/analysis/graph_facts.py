"""The shape of a graph: numbers that suggest a suitable space."""

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np
from torch_geometric.data import Data
from torch_geometric.utils import homophily as edge_homophily

from curvlab.analysis.hyperbolicity import EXACT, adjacency_matrix, hyperbolicity, mean_delta
from curvlab.analysis.sectional_curvature import sectional_curvature

TAIL = 0.1  # share of the nodes in the tail of the degrees


@dataclass(frozen=True)
class GraphFacts:
    """Shape of a graph."""

    nodes: int
    edges: int
    components: int
    mean_degree: float
    max_degree: int
    tail_exponent: float | None
    clustering: float
    delta: tuple[float, float]  # lower and upper bound; equal bounds are exact
    diameter: int
    mean_delta: tuple[float, float]  # mean and half width of the 95 % interval
    curvature: float | None  # mean sectional curvature of the nodes
    curvature_counts: tuple[int, ...]  # histogram of the nodes' curvatures
    curvature_edges: tuple[float, ...]
    homophily: float | None
    chance_homophily: float | None  # homophily of random edges with the same degrees

    def lines(self) -> Iterator[str]:
        """Describe the graph."""
        parts = f", {self.components} components" if self.components > 1 else ""
        tail = f", tail exponent {self.tail_exponent:.1f}" if self.tail_exponent else ""
        yield (
            f"{self.nodes:,} nodes, {self.edges:,} edges{parts}; degree {self.mean_degree:.1f} on "
            f"average, {self.max_degree} at most{tail}"
        )
        low, high = self.delta
        delta = f"{low:g} to {high:g} (that of {EXACT} random nodes to half the diameter)"
        if low == high:
            delta = f"{low:g} (exact)"
        mean, pm = self.mean_delta
        yield (
            f"Gromov's delta {delta}, of a random quadruple {mean:.3f} ± {pm:.3f}; "
            f"diameter {self.diameter}; 0 is a tree"
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
    """Measure a graph with `edge_index` and optional classes `y`; sample large graphs."""
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
    low, high, diameter = hyperbolicity(graph.edge_index, nodes, seed)
    homophily, chance = _homophily(graph, degrees)
    return GraphFacts(
        nodes=nodes,
        edges=adjacency.nnz // 2,
        components=nx.number_connected_components(network),
        mean_degree=float(degrees.mean()),
        max_degree=int(degrees.max()),
        tail_exponent=tail_exponent(degrees),
        clustering=float(nx.average_clustering(network)),
        delta=(low, high),
        diameter=diameter,
        mean_delta=mean_delta(adjacency, seed),
        curvature=float(curvature.mean()) if len(curvature) else None,
        curvature_counts=tuple(counts.tolist()),
        curvature_edges=tuple(ends.tolist()),
        homophily=homophily,
        chance_homophily=chance,
    )


def _homophily(graph: Data, degrees: np.ndarray) -> tuple[float | None, float | None]:
    """Homophily of the edges between nodes with a class, and of random edges."""
    y = graph.get("y")
    if y is None or y.dim() != 1 or y.is_floating_point():
        return None, None
    has_classes = (y[graph.edge_index] >= 0).all(0)
    observed = edge_homophily(graph.edge_index[:, has_classes], y)
    has_class = (y >= 0).cpu().numpy()
    counts = np.bincount(y.cpu().numpy()[has_class], degrees[has_class])
    shares = counts / counts.sum()
    return observed, float((shares**2).sum())


def tail_exponent(degrees: np.ndarray) -> float | None:
    """Exponent of `p(d) ~ d^-a` of the largest degrees, by maximum likelihood.

    `a = 1 + n / sum ln(d / (d_min - 1/2))` over the n degrees of at least `d_min`: one node in ten
    has at least this degree. The exponent is None if these degrees are equal.

    Source: Clauset, Shalizi and Newman 2009, arXiv:0706.1062, Eq. 3.7.
    """
    smallest = max(int(np.quantile(degrees, 1 - TAIL, method="higher")), 1)
    tail = degrees[degrees >= smallest]
    if len(tail) == 0 or tail.max() == tail.min():
        return None
    return float(1 + len(tail) / np.log(tail / (smallest - 0.5)).sum())

"""Small graphs of which one knows the space that they fit into: trees, a sphere, a grid."""

from abc import abstractmethod
from typing import Annotated

import networkx as nx
import numpy as np
import torch
from annotated_types import Ge
from scipy.spatial.distance import cdist
from torch_geometric.data import Data
from torch_geometric.transforms import LargestConnectedComponents

from curvlab.data.datasets.geometric import NODES, sphere_points
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.sources import Generated
from curvlab.options import PositiveInt, Seed, Share

Branching = Annotated[int, Ge(2)]

NEAREST = 5
"""Points of a sphere that a point is joined to."""


class KnownGraph(Generated):
    """The largest component of a generated graph, without features."""

    @abstractmethod
    def edges(self) -> tuple[np.ndarray, int]:
        """Edges `[2, edges]`, in any order and direction, and the number of nodes."""

    def load(self) -> Data:
        """Return the graph: `edge_index [2, 2M]` and `num_nodes`."""
        edges, nodes = self.edges()
        edge_index = simple_edges(torch.from_numpy(edges.astype(np.int64)), nodes)
        return LargestConnectedComponents()(Data(edge_index=edge_index, num_nodes=nodes))


class BalancedTree(KnownGraph):
    """Every node above the last level has as many children: hyperbolic, Gromov's delta is 0.

    Args:
        branching: children of a node.
        depth: levels below the root.
    """

    branching: Branching = 3
    depth: PositiveInt = 4

    def edges(self) -> tuple[np.ndarray, int]:
        """From parents to children, level by level."""
        return _edges_of(nx.balanced_tree(self.branching, self.depth))


class NoisyTree(BalancedTree):
    """A balanced tree and edges between random nodes: hyperbolic with a few cycles.

    Args:
        noise: further edges, as a share of the tree's.
    """

    noise: Share = 0.1
    seed: Seed = 0

    def edges(self) -> tuple[np.ndarray, int]:
        """Those of the tree, then the others."""
        tree, nodes = super().edges()
        i, j = np.triu_indices(nodes, k=1)
        free = np.flatnonzero(~np.isin(i * nodes + j, tree[0] * nodes + tree[1]))
        extra = min(round(self.noise * tree.shape[1]), len(free))
        chosen = np.random.default_rng(self.seed).choice(free, extra, replace=False)
        return np.concatenate([tree, np.stack([i, j])[:, chosen]], axis=1), nodes


class SpherePoints(KnownGraph):
    """Uniform points of a sphere, each joined to its five nearest: spherical."""

    num_nodes: NODES = 120
    seed: Seed = 0

    def edges(self) -> tuple[np.ndarray, int]:
        """From each point to its nearest."""
        points = sphere_points(self.num_nodes, np.random.default_rng(self.seed))
        distance = cdist(points, points)
        np.fill_diagonal(distance, np.inf)
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEAREST]
        source = np.repeat(np.arange(self.num_nodes), NEAREST)
        return np.stack([source, nearest.ravel()]), self.num_nodes


class Grid(KnownGraph):
    """Crossings of a rectangular grid: flat.

    Args:
        rows: nodes from top to bottom.
        columns: nodes from left to right.
    """

    rows: Branching = 11
    columns: Branching = 11

    def edges(self) -> tuple[np.ndarray, int]:
        """Row by row."""
        return _edges_of(nx.grid_2d_graph(self.rows, self.columns))


class RandomGeometric(KnownGraph):
    """Uniform points of a square, joined where nearer than a radius: flat.

    The radius r is the one at which a point inside has 8 neighbours on average,
    `num_nodes pi r^2 = 8`; near the boundary points have fewer.
    """

    num_nodes: NODES = 120
    seed: Seed = 0

    def edges(self) -> tuple[np.ndarray, int]:
        """Between near points."""
        points = np.random.default_rng(self.seed).random((self.num_nodes, 2))
        radius = np.sqrt(8 / (np.pi * self.num_nodes))
        near = np.triu(cdist(points, points) < radius, k=1)
        return np.stack(np.nonzero(near)), self.num_nodes


class RingOfTrees(KnownGraph):
    """A ring of 8 roots of binary trees of depth 3: a product of a circle and trees."""

    def edges(self) -> tuple[np.ndarray, int]:
        """Those of the trees, one after the other, and of the ring of their roots."""
        trees = [nx.balanced_tree(2, 3) for _ in range(8)]
        graph, size = nx.disjoint_union_all(trees), len(trees[0])
        nx.add_cycle(graph, range(0, len(graph), size))
        return _edges_of(graph)


def _edges_of(graph: nx.Graph) -> tuple[np.ndarray, int]:
    """Edges `[2, edges]` of a graph by the position of its nodes, and their number."""
    return np.stack(np.nonzero(np.triu(nx.to_numpy_array(graph)))), len(graph)

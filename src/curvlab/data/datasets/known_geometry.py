"""Small graphs of known geometry: trees, a sphere, a grid."""

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
    def graph(self) -> nx.Graph:
        """The graph, its nodes numbered in order."""

    def load(self) -> Data:
        graph = nx.convert_node_labels_to_integers(self.graph())
        edges = torch.tensor(list(graph.edges)).T
        nodes = len(graph)
        data = Data(edge_index=simple_edges(edges, nodes), num_nodes=nodes)
        return LargestConnectedComponents()(data)


class BalancedTree(KnownGraph):
    """A tree whose inner nodes have equally many children: hyperbolic, Gromov's delta is 0.

    Args:
        branching: children of a node.
        depth: levels below the root.
    """

    branching: Branching = 3
    depth: PositiveInt = 4

    def graph(self) -> nx.Graph:
        return nx.balanced_tree(self.branching, self.depth)


class NoisyTree(BalancedTree):
    """A balanced tree and edges between random nodes: hyperbolic with a few cycles.

    Args:
        noise: further edges, as a share of the tree's.
    """

    noise: Share = 0.1
    seed: Seed = 0

    def graph(self) -> nx.Graph:
        tree = super().graph()
        free = np.sort(list(nx.non_edges(tree)))
        free = free[np.lexsort(free.T[::-1])]
        extra = min(round(self.noise * tree.number_of_edges()), len(free))
        sample = np.random.default_rng(self.seed).choice(len(free), extra, replace=False)
        tree.add_edges_from(free[sample].tolist())
        return tree


class SpherePoints(KnownGraph):
    """Uniform points of a sphere, each joined to its five nearest: spherical."""

    num_nodes: NODES = 120
    seed: Seed = 0

    def graph(self) -> nx.Graph:
        points = sphere_points(self.num_nodes, np.random.default_rng(self.seed))
        distance = cdist(points, points)
        np.fill_diagonal(distance, np.inf)
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEAREST]
        return nx.Graph(dict(enumerate(nearest.tolist())))


class Grid(KnownGraph):
    """Crossings of a rectangular grid: flat.

    Args:
        rows: nodes from top to bottom.
        columns: nodes from left to right.
    """

    rows: Branching = 11
    columns: Branching = 11

    def graph(self) -> nx.Graph:
        return nx.grid_2d_graph(self.rows, self.columns)


class RandomGeometric(KnownGraph):
    """Uniform points of a square, joined where nearer than r, `num_nodes pi r^2 = 8`: flat."""

    num_nodes: NODES = 120
    seed: Seed = 0

    def graph(self) -> nx.Graph:
        points = np.random.default_rng(self.seed).random((self.num_nodes, 2)).tolist()
        radius = np.sqrt(8 / (np.pi * self.num_nodes))
        return nx.random_geometric_graph(self.num_nodes, radius, pos=dict(enumerate(points)))


class RingOfTrees(KnownGraph):
    """A ring of 8 roots of binary trees of depth 3: a product of a circle and trees."""

    def graph(self) -> nx.Graph:
        trees = [nx.balanced_tree(2, 3) for _ in range(8)]
        graph = nx.disjoint_union_all(trees)
        nx.add_cycle(graph, range(0, len(graph), len(trees[0])))
        return graph

"""A generated graph: scale-free and tree-like, with some cycles."""

from typing import Annotated

import numpy as np
from annotated_types import Ge
from torch_geometric.data import Data

from curvlab.data.datasets.networks import undirected_graph
from curvlab.data.files.sources import Generated
from curvlab.options import Seed, Share


class SyntheticWeb(Generated):
    """A web-like graph: a preferential-attachment tree and short cycles along it.

    Each new node links to an earlier one with probability proportional to its degree (Barabasi and
    Albert, 1999). Cycles close triangles: consecutive children of one node, or a node and its
    grandparent.

    Args:
        num_nodes: number of nodes.
        cycle_fraction: edges that close a triangle, as a fraction of the tree's.
    """

    num_nodes: Annotated[int, Ge(2)] = 3000
    cycle_fraction: Share = 0.5
    seed: Seed = 0

    def load(self) -> Data:
        generator = np.random.default_rng(self.seed)
        parent = preferential_attachment(self.num_nodes, generator)
        tree = np.stack([parent[1:], np.arange(1, self.num_nodes)], axis=1)
        order = np.argsort(parent[1:], kind="stable") + 1
        siblings = np.stack([order[:-1], order[1:]], axis=1)
        siblings = siblings[parent[order[:-1]] == parent[order[1:]]]
        below = np.flatnonzero(parent != 0)
        grandparents = np.stack([parent[parent[below]], below], axis=1)
        closing = np.concatenate([siblings, grandparents])
        extra = min(round(self.cycle_fraction * len(tree)), len(closing))
        sample = generator.permutation(len(closing))[:extra]
        # The tree comes first, so that numbering by first appearance keeps the numbers.
        edge_index, num_nodes = undirected_graph(np.concatenate([tree, closing[sample]]))
        return Data(edge_index=edge_index, num_nodes=num_nodes)


def preferential_attachment(num_nodes: int, generator: np.random.Generator) -> np.ndarray:
    """Parents `[num_nodes]` of a tree grown by preferential attachment; the root 0 is its own.

    Positions 2e and 2e + 1 of the list of endpoints are node e + 1 and its parent, which copies a
    position drawn uniformly; copies of copies are resolved by pointer jumping.
    """
    edges = np.arange(num_nodes - 1)
    position = np.zeros(num_nodes - 1, dtype=np.int64)
    position[1:] = generator.integers(0, 2 * edges[1:])
    copies = position % 2 == 1
    pointer = np.where(copies, position // 2, edges)
    while not np.array_equal(pointer, pointer[pointer]):
        pointer = pointer[pointer]
    new_node = np.where(edges == 0, 0, position // 2 + 1)
    return np.concatenate([[0], new_node[pointer]])

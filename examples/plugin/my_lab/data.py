"""A generated graph with a cycle that no tree has."""

import numpy as np
from torch_geometric.data import Data

from curvlab.data.datasets.networks import undirected_graph
from curvlab.data.files.sources import Generated
from curvlab.options import PositiveInt


class RingOfStars(Generated):
    """A ring of hubs with leaves.

    Args:
        hubs: nodes of the ring.
        leaves: of each hub.
    """

    def __init__(self, hubs: PositiveInt = 12, leaves: PositiveInt = 4) -> None:
        self.hubs, self.leaves = hubs, leaves

    def load(self) -> Data:
        """The graph: `edge_index [2, 2M]` and `num_nodes`."""
        hub = np.arange(self.hubs)
        ring = np.stack([hub, (hub + 1) % self.hubs], axis=1)
        leaf = np.arange(self.hubs * self.leaves)
        stars = np.stack([leaf % self.hubs, self.hubs + leaf], axis=1)
        edge_index, num_nodes = undirected_graph(np.concatenate([ring, stars]))
        return Data(edge_index=edge_index, num_nodes=num_nodes)

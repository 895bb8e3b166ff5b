"""A model and a graph for curvlab."""

from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.nn import TAGConv
from torch_geometric.utils import to_undirected

from curvlab.data.files.sources import Generated
from curvlab.models.graph_network import GraphNetwork
from curvlab.options import PositiveInt


class TAG(GraphNetwork):
    """Weights for each power of the adjacency matrix (arXiv:1710.10370).

    Args:
        in_channels: number of input features.
        hops: the highest power.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, hops: PositiveInt = 2, **options: Any) -> None:
        super().__init__(in_channels, partial(TAGConv, K=hops), "edge_index", **options)


class RingOfStars(Generated):
    """A ring of 12 hubs.

    Args:
        leaves: of each hub.
    """

    def __init__(self, leaves: PositiveInt = 4) -> None:
        self.nodes = torch.arange(12 * (1 + leaves))

    def load(self) -> Data:
        """The graph: `edge_index [2, 2M]` and `num_nodes`."""
        ends = torch.where(self.nodes < 12, (self.nodes + 1) % 12, self.nodes % 12)
        edge_index = to_undirected(torch.stack([self.nodes, ends]))
        return Data(edge_index=edge_index, num_nodes=len(self.nodes))

"""A model and a graph for curvlab."""

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
        super().__init__(in_channels, layer=lambda *size: TAGConv(*size, K=hops), **options)


class RingOfStars(Generated):
    """A ring of 12 hubs with 4 leaves each."""

    def load(self) -> Data:
        """The graph: `edge_index [2, 2M]` and `num_nodes`."""
        nodes = torch.arange(12 * 5)
        ends = torch.where(nodes < 12, (nodes + 1) % 12, nodes % 12)
        return Data(edge_index=to_undirected(torch.stack([nodes, ends])), num_nodes=len(nodes))

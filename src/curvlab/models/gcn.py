"""GCN: Semi-supervised classification with graph convolutional networks.

Kipf and Welling 2017, arXiv:1609.02907.
"""

from functools import partial
from typing import Any

from torch_geometric.nn import GCNConv

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import Incidental


class GCN(GraphNetwork):
    """Graph convolutional network, `D^-1/2 (A + I) D^-1/2 X W + b` in each layer.

    Args:
        in_channels: number of input features.
        cached: keep the normalised adjacency; only for one graph and without `skip_average`.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, cached: Incidental[bool] = False, **options: Any) -> None:
        super().__init__(in_channels, partial(GCNConv, cached=cached), "edge_index", **options)

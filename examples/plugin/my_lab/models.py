"""Topology-adaptive convolutions (Du et al. 2017, arXiv:1710.10370)."""

from functools import partial
from typing import Any

from torch_geometric.nn import TAGConv

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import PositiveInt


class TAG(GraphNetwork):
    """Sums over the powers of the adjacency matrix, weights for each.

    Args:
        in_channels: number of input features.
        hops: the highest power.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, hops: PositiveInt = 2, **options: Any) -> None:
        super().__init__(in_channels, partial(TAGConv, K=hops), "csr", **options)

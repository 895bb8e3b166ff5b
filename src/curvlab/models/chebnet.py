"""ChebNet: Convolutional neural networks on graphs with fast localized spectral filtering.

Defferrard et al. 2016, arXiv:1606.09375.
"""

from functools import partial
from typing import Any

from torch_geometric.nn import ChebConv

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import PositiveInt


class ChebNet(GraphNetwork):
    """Convolutions by Chebyshev polynomials of the Laplacian.

    Args:
        in_channels: number of input features.
        K: number of polynomials, one more than the highest order.
        **options: those of `GraphNetwork`.
    """

    def __init__(
        self,
        in_channels: int,
        K: PositiveInt = 3,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, partial(ChebConv, K=K), "edge_index", **options)

"""SGC: Simplifying graph convolutional networks (Wu et al. 2019, arXiv:1902.07153)."""

from functools import partial
from typing import Any, ClassVar

from torch_geometric.nn import SGConv

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import PositiveInt


class SGC(GraphNetwork):
    """Simplified graph convolution, `(D^-1/2 (A + I) D^-1/2)^K X W + b` in each layer.

    Args:
        in_channels: number of input features.
        K: hops of a layer.
        cached: keep the propagated features; only for one graph and one layer without dropout.
        **options: those of `GraphNetwork`.
    """

    by_rows: ClassVar[dict[str, Any] | None] = {"skip_average": False}

    def __init__(
        self,
        in_channels: int,
        K: PositiveInt = 1,
        cached: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, partial(SGConv, K=K, cached=cached), "csr", **options)

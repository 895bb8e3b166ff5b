"""SGC: Simplifying graph convolutional networks (Wu et al. 2019, arXiv:1902.07153)."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import PositiveInt


class ProjectedSGConv(SGConv):
    """`SGConv` that projects first, `S^K (X W) + b`, at the price of `out_channels` a hop.

    With `cached`, or where it widens its input, it propagates first as `SGConv` does.
    """

    @torch.compiler.disable  # which takes no parts of a sparse tensor
    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Map features `[nodes, in_channels]` to `[nodes, out_channels]`."""
        if self.cached or self.in_channels < self.out_channels:
            return super().forward(x, edge_index, edge_weight)
        if isinstance(edge_index, Tensor):
            edge_index, edge_weight = gcn_norm(
                edge_index, edge_weight, len(x), add_self_loops=self.add_self_loops, dtype=x.dtype
            )
        x = x @ self.lin.weight.T
        for _ in range(self.K):
            x = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        return x + self.lin.bias


class SGC(GraphNetwork):
    """Simplified graph convolution, `(D^-1/2 (A + I) D^-1/2)^K X W + b` in each layer.

    Args:
        in_channels: number of input features.
        K: hops of a layer.
        cached: keep the propagated features; only for one graph and one layer without dropout.
        **options: those of `GraphNetwork`.
    """

    def __init__(
        self,
        in_channels: int,
        K: PositiveInt = 1,
        cached: bool = False,
        **options: Any,
    ) -> None:
        layer = partial(ProjectedSGConv, K=K, cached=cached)
        super().__init__(in_channels, layer, "csr", **options)

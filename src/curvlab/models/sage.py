"""GraphSAGE: Inductive representation learning on large graphs.

Hamilton et al. 2017, arXiv:1706.02216.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv, SimpleConv

from curvlab.models.graph_network import GraphNetwork


class MeanSAGE(nn.Module):
    """GraphSAGE's layer with the mean, `W_1 mean_{u ~ v} x_u + W_2 x_v + b`, projecting first.

    `SAGEConv` averages features before it projects them, at the price of their number instead of
    `out_channels`.

    Shapes: `[nodes, in_channels]`, `[2, edges]`; returns `[nodes, out_channels]`.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, 2 * out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.mean = SimpleConv(aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Map features `[nodes, in_channels]`."""
        neighbours, own = self.lin(x).chunk(2, dim=-1)
        return self.mean(neighbours, edge_index) + own + self.bias


class GraphSAGE(GraphNetwork):
    """GraphSAGE with mean aggregation.

    Args:
        in_channels: number of input features.
        project_first: project before averaging, cheaper where there are many features; reads
            `edge_index`, else `adj_t`.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, project_first: bool = False, **options: Any) -> None:
        if project_first:
            super().__init__(in_channels, MeanSAGE, "edge_index", **options)
        else:
            super().__init__(in_channels, SAGEConv, "csr", **options)

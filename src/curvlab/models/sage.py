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

    Its bias starts at 0, and no draw of random numbers is that of `SAGEConv`.

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


class ProjectedSAGEConv(SAGEConv):
    """`SAGEConv` with the mean that projects first, unless it widens its input."""

    def forward(self, x: Tensor, edge_index: Any, size: Any = None) -> Tensor:
        """Map features `[nodes, in_channels]` to `[nodes, out_channels]`."""
        if self.in_channels < self.out_channels:
            return super().forward(x, edge_index, size)
        weights = torch.cat([self.lin_l.weight, self.lin_r.weight])
        neighbours, own = (x @ weights.T).chunk(2, dim=-1)
        mean = self.propagate(edge_index, x=(neighbours, neighbours), size=size)
        return mean + own + self.lin_l.bias


class GraphSAGE(GraphNetwork):
    """GraphSAGE with mean aggregation.

    Args:
        in_channels: number of input features.
        project_first: read `edge_index` instead of `adj_t`, and draw both weights as one matrix
            (`MeanSAGE`).
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, project_first: bool = False, **options: Any) -> None:
        if project_first:
            super().__init__(in_channels, MeanSAGE, "edge_index", **options)
        else:
            super().__init__(in_channels, ProjectedSAGEConv, "csr", **options)

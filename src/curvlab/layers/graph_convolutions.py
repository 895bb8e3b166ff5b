"""Layers of PyTorch Geometric by products with sparse matrices, and GraphSAGE's mean.

They take a `SparseMatrix`, or None for a graph without edges.
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv, SGConv, SimpleConv

from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix, neighbourhood_mean


class MatrixGCN(GCNConv):
    """`GCNConv` by a product with the normalised adjacency; None for a graph without edges."""

    def forward(self, x: Tensor, adjacency: SparseMatrix | None) -> Tensor:
        mapped = self.lin(x)
        return (mapped if adjacency is None else adjacency @ mapped) + self.bias


class MeanSAGE(nn.Module):
    """GraphSAGE's layer with the mean, `W_1 mean_{u ~ v} x_u + W_2 x_v + b`, projecting first.

    The bias starts at 0. The initial weights differ from those of `SAGEConv` with the same seed.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, 2 * out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.mean = SimpleConv(aggr="mean")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        neighbours, root = self.lin(x).chunk(2, dim=-1)
        return self.mean(neighbours, edge_index) + root + self.bias


class MatrixSAGE(SAGEConv):
    """`SAGEConv` with the mean of a sparse matrix; it projects first unless that widens."""

    def forward(self, x: Tensor, adjacency: Tensor | SparseMatrix | None) -> Tensor:
        if adjacency is None:
            return self.lin_r(x) + self.lin_l.bias
        adjacency = as_matrix(adjacency)
        if self.in_channels < self.out_channels:
            return self.lin_l(neighbourhood_mean(adjacency, x)) + self.lin_r(x)
        weights = torch.cat([self.lin_l.weight, self.lin_r.weight])
        neighbours, root = (x @ weights.T).chunk(2, dim=-1)
        return neighbourhood_mean(adjacency, neighbours) + root + self.lin_l.bias


class MatrixSGC(SGConv):
    """`SGConv` by products with a normalised matrix; it projects first unless that widens."""

    def forward(self, x: Tensor, adjacency: SparseMatrix | None) -> Tensor:
        widens = self.in_channels < self.out_channels
        if not widens:
            x = x @ self.lin.weight.T
        if adjacency is not None:
            for _ in range(self.K):
                x = adjacency @ x
        return self.lin(x) if widens else x + self.lin.bias

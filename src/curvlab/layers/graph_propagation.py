"""A graph network of sparse products: the graph branch of Hypformer and SGFormer."""

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.graph.sparse_graph import Features
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix
from curvlab.layers.elementwise import BatchNorm, dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.options import Dropout, PositiveInt


class GraphConvolutionBranch(Checked, nn.Module):
    r"""A graph network whose layers all use the first layer's output.

    `x_0 = drop(relu(BN(W_in x + b_in)))`; in each layer, with A the normalised adjacency,

        u = A x,   u <- W [u ; x_0] + b  or  W u + b  or  u,   x <- drop(relu(BN(u))) (+ x_0).

    Without `weight` and `initial`, propagation has no parameters. Features that are nearly all 0 go
    through sparse products, as in `FeatureLinear`.

    Shapes: features `[nodes, in_channels]`, adjacency `[nodes, nodes]` (sparse CSR, rows are
    targets); returns `[nodes, dim]`.

    Args:
        layers: number of propagations.
        dropout: dropout of every layer's output, including the first.
        batch_norm: apply the batch norms BN of the formula.
        residual: add `x_0` to every layer's output.
        weight: apply a linear map in every layer.
        initial: apply the linear map to `[u ; x_0]`; implies `weight`.
        activation: apply the ReLU after each propagation; the first layer always has one.

    Source: the graph branch in the code of SGFormer's authors, which Hypformer also uses. There,
    too, the residual connection adds the first layer's output instead of the previous layer's.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        layers: PositiveInt = 2,
        dropout: Dropout = 0.0,
        batch_norm: bool = False,
        residual: bool = True,
        weight: bool = False,
        initial: bool = False,
        activation: bool = True,
    ) -> None:
        super().__init__()
        self.features = FeatureLinear(in_channels, dim)
        width = 2 * dim if initial else dim
        mapped = weight or initial
        self.maps = nn.ModuleList(
            nn.Linear(width, dim) if mapped else nn.Identity() for _ in range(layers)
        )
        self.norms = nn.ModuleList(
            BatchNorm(dim) if batch_norm else nn.Identity() for _ in range(layers + 1)
        )
        self.dropout = dropout
        self.residual = residual
        self.initial = initial
        self.activation = activation

    def forward(self, features: Tensor | Features, adjacency: Tensor | SparseMatrix) -> Tensor:
        adjacency = as_matrix(adjacency)
        x = F.relu(self.norms[0](self.features(features)))
        first = dropout(x, self.dropout, self.training)
        x = first
        for linear, norm in zip(self.maps, self.norms[1:], strict=True):
            u = adjacency @ x
            if self.initial:
                assert isinstance(linear, nn.Linear)
                weight_u, weight_first = linear.weight.chunk(2, dim=1)
                u = F.linear(u, weight_u, linear.bias) + F.linear(first, weight_first)
            else:
                u = linear(u)
            u = norm(u)
            if self.activation:
                u = F.relu(u)
            u = dropout(u, self.dropout, self.training)
            x = u + first if self.residual else u
        return x

"""A graph network of sparse products, the graph's branch of Hypformer and SGFormer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.layers.elementwise import BatchNorm, dropout
from curvlab.layers.sparse_graph import FeatureLinear, Features, SparseMatrix, as_matrix, row_sums
from curvlab.options import Dropout, PositiveInt
from curvlab.process import all_reduce_sum, own_share


class GraphConvolutionBranch(Checked, nn.Module):
    r"""A graph network whose every layer goes back to the first one's output.

    `x_0 = drop(relu(BN(W_in x + b_in)))`; in each layer, with A the normalised adjacency,

        u = A x,   u <- W [u ; x_0] + b  or  W u + b  or  u,   x <- drop(relu(BN(u))) (+ x_0).

    Without `weight` and `initial` it is a propagation without parameters. Features that are nearly
    all 0 go through sparse products, as in `FeatureLinear`.

    Shapes: features `[nodes, in_channels]`, adjacency `[nodes, nodes]` (sparse CSR, rows are
    targets); returns `[nodes, dim]`.

    Args:
        layers: number of propagations.
        dropout: of every layer's output, the first one's too.
        batch_norm: normalise where the formula says BN.
        residual: add `x_0` to every layer's output.
        weight: a linear map in every layer.
        initial: map `[u ; x_0]`; includes `weight`.
        activation: apply the ReLU after each propagation; the first layer always has one.

    Source: the graph branch of SGFormer's authors' code, which Hypformer takes over; there, too,
    the residual connection leads to the first layer's output instead of the one before.
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
        self.dim = dim
        self.dropout = dropout
        self.residual, self.initial, self.activation = residual, initial, activation

    def forward(self, features: Tensor | Features, adjacency: Tensor | SparseMatrix) -> Tensor:
        adjacency = as_matrix(adjacency)
        x = first = self._first(features)
        for linear, norm in zip(self.maps, self.norms[1:], strict=True):
            x = self._layer(adjacency @ x, first, linear, norm)
        return x

    @torch.no_grad()
    def encode_in_chunks(self, features: Tensor, adjacency: Tensor, chunk: int) -> Tensor:
        """Result of `forward` in evaluation, from `chunk` nodes at a time, layer by layer.

        The processes of a group share the chunks.
        """
        first = features.new_zeros(len(features), self.dim)
        adjacency = adjacency.to(first.dtype)
        rows = own_share([slice(i, i + chunk) for i in range(0, len(features), chunk)])
        for part in rows:
            first[part] = self._first(features[part])
        x = all_reduce_sum(first)
        for linear, norm in zip(self.maps, self.norms[1:], strict=True):
            after = torch.zeros_like(first)
            for part in rows:
                offsets = adjacency.crow_indices()[part.start : part.stop + 1]
                entries = slice(int(offsets[0]), int(offsets[-1]))
                neighbours = adjacency.col_indices()[entries], adjacency.values()[entries]
                u = row_sums(x, offsets - offsets[0], *neighbours)
                after[part] = self._layer(u, first[part], linear, norm)
            x = all_reduce_sum(after)
        return x

    def _first(self, features: Tensor | Features) -> Tensor:
        return self._drop(F.relu(self.norms[0](self.features(features))))

    def _layer(self, u: Tensor, first: Tensor, linear: nn.Module, norm: nn.Module) -> Tensor:
        if self.initial:
            assert isinstance(linear, nn.Linear)
            weight_u, weight_first = linear.weight.chunk(2, dim=1)
            u = F.linear(u, weight_u, linear.bias) + F.linear(first, weight_first)
        else:
            u = linear(u)
        u = norm(u)
        u = self._drop(F.relu(u) if self.activation else u)
        return u + first if self.residual else u

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

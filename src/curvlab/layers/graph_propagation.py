"""Propagation along the edges of a graph by sparse products, and the networks made of it."""

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.neighbour_sums import sparse_product
from curvlab.manifolds.kernels import working
from curvlab.options import Dropout, PositiveInt
from curvlab.process import own_share, put_together


class SparsePropagation(nn.Module):
    """`A X` for a sparse matrix A that gets no gradient, `[nodes, nodes]` by `[nodes, dim]`.

    The gradient is `A^T G` through the transpose, which is made when a matrix is first seen (see
    `transposed`): autograd's own would transpose in every step. Half
    precision is raised to float32.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: tuple[Tensor, torch.dtype] | None = None
        self._matrix: Tensor
        self._transpose: Tensor

    def forward(self, matrix: Tensor, x: Tensor) -> Tensor:
        """Product of a matrix `[rows, nodes]` (sparse CSR) with `[nodes, dim]`."""
        x = working(x)
        if self._seen is None or self._seen[0] is not matrix or self._seen[1] != x.dtype:
            self._seen = matrix, x.dtype
            self._matrix = matrix.to(x.dtype)
            self._transpose = transposed(self._matrix)
        return _Product.apply(x, self._matrix, self._transpose)


class NeighbourhoodMean(SparsePropagation):
    """Means of vectors over neighbourhoods, rows of a sparse CSR matrix of ones; 0 of none."""

    def forward(self, matrix: Tensor, x: Tensor) -> Tensor:
        """Means `[rows, dim]` of vectors `[nodes, dim]`."""
        neighbours = matrix.crow_indices().diff().clamp(min=1).unsqueeze(1)
        return super().forward(matrix, x) / neighbours


class _Product(torch.autograd.Function):
    """A matrix times x, with the transpose at hand."""

    @staticmethod
    def forward(x: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:  # noqa: ARG004
        """`[rows, dim]`."""
        with torch.autocast(x.device.type, enabled=False):
            return sparse_product(matrix, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004
        """Keep the matrices."""
        _, ctx.matrix, ctx.transpose = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """The transpose times the gradient."""
        return _Product.apply(grad, ctx.transpose, ctx.matrix), None, None


def transposed(matrix: Tensor) -> Tensor:
    """The transpose of a sparse CSR matrix as one, the matrix itself if it is symmetric.

    On an accelerator always another: a comparison would wait for it, with parts of a graph in every
    step.
    """
    with warnings.catch_warnings():
        # Said once a process; products with dense matrices, all that is used here, are stable.
        warnings.filterwarnings("ignore", ".*Sparse (CSR|CSC) tensor support is in beta.*")
        transpose = matrix.t().to_sparse_csr()
    if matrix.device.type != "cpu":
        return transpose
    pairs = (
        (part(matrix), part(transpose))
        for part in (Tensor.crow_indices, Tensor.col_indices, Tensor.values)
    )
    return matrix if all(torch.equal(one, other) for one, other in pairs) else transpose


class GraphConvolutionBranch(Checked, nn.Module):
    r"""A graph network whose every layer goes back to the first one's output.

    `x_0 = drop(relu(BN(W_in x + b_in)))`; in each layer, with A the normalised adjacency,

        u = A x,   u <- W [u ; x_0] + b  or  W u + b  or  u,   x <- drop(relu(BN(u))) (+ x_0).

    Without `weight` and `initial` it is a propagation without parameters. Features that are nearly
    all 0 go through sparse products, as in `FeatureLinear`.

    Shapes: features `[nodes, in_channels]`, adjacency `[nodes, nodes]` (sparse CSR, rows are
    targets); returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width.
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
        self.propagation = SparsePropagation()
        width = 2 * dim if initial else dim
        mapped = weight or initial
        self.maps = nn.ModuleList(
            nn.Linear(width, dim) if mapped else nn.Identity() for _ in range(layers)
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(dim) if batch_norm else nn.Identity() for _ in range(layers + 1)
        )
        self.dim = dim
        self.dropout = dropout
        self.residual, self.initial, self.activation = residual, initial, activation

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """Map features and propagate them."""
        x = first = self._first(features)
        for linear, norm in zip(self.maps, self.norms[1:], strict=True):
            x = self._layer(self.propagation(adjacency, x), first, linear, norm)
        return x

    @torch.no_grad()
    def encode_in_chunks(self, features: Tensor, adjacency: Tensor, chunk: int) -> Tensor:
        """What `forward` returns in evaluation, `chunk` nodes at a time, layer by layer.

        Beside the features three arrays `[nodes, dim]` are held and what a chunk takes. The
        processes of a group share the chunks.
        """
        first = features.new_zeros(len(features), self.dim)
        adjacency = adjacency.to(first.dtype)
        rows = own_share([slice(i, i + chunk) for i in range(0, len(features), chunk)])
        for part in rows:
            first[part] = self._first(features[part])
        x = put_together(first)
        for linear, norm in zip(self.maps, self.norms[1:], strict=True):
            after = torch.zeros_like(first)
            for part in rows:
                u = sparse_product(csr_rows(adjacency, part), x)
                after[part] = self._layer(u, first[part], linear, norm)
            x = put_together(after)
        return x

    def _first(self, features: Tensor) -> Tensor:
        return self._drop(F.relu(self.norms[0](self.features(features))))

    def _layer(self, u: Tensor, first: Tensor, linear: nn.Module, norm: nn.Module) -> Tensor:
        """A layer after its propagation."""
        if self.initial:
            assert isinstance(linear, nn.Linear)
            of_u, of_first = linear.weight.chunk(2, dim=1)
            u = F.linear(u, of_u, linear.bias) + F.linear(first, of_first)
        else:
            u = linear(u)
        u = norm(u)
        u = self._drop(F.relu(u) if self.activation else u)
        return u + first if self.residual else u

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def csr_rows(matrix: Tensor, rows: slice) -> Tensor:
    """Some consecutive rows of a sparse CSR matrix, without a copy of their entries."""
    first, last, _ = rows.indices(matrix.shape[0])
    offsets = matrix.crow_indices()[first : last + 1]
    entries = slice(int(offsets[0]), int(offsets[-1]))
    return torch.sparse_csr_tensor(
        offsets - offsets[0],
        matrix.col_indices()[entries],
        matrix.values()[entries],
        (last - first, matrix.shape[1]),
        check_invariants=False,
    )

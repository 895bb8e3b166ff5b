"""Constant sparse matrices with their transposes, and sums over their rows."""

import warnings
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from curvlab.manifolds.kernels import upcast_half


def neighbour_sums(
    x: Tensor, neighbours: Tensor, offsets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Weighted sums of each row's neighbours, `[rows, dim]`.

    `embedding_bag` keeps a row's sum in registers and prefetches vectors. It takes half the time of
    torch's sparse products for 64 numbers per node, and 80 % if no cache holds the vectors
    (docs/results/speed/sparse.txt).

    Args:
        x: Vectors `[nodes, dim]`.
        neighbours: Indices of the neighbours, row by row, `[entries]`.
        offsets: Beginnings of the rows and the end of the last one, `[rows + 1]`.
        weights: Weights `[entries]`; None: ones.
    """
    return F.embedding_bag(
        neighbours,
        x.contiguous(),
        offsets,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weights,
    )


def inverse_roots(degrees: Tensor) -> Tensor:
    """`D^{-1/2}` of degrees, 0 where a degree is 0."""
    return torch.where(degrees > 0, degrees.rsqrt(), 0)


def to_csr(x: Tensor) -> Tensor:
    """Convert a dense matrix, or a sparse COO matrix, to sparse CSR."""
    with warnings.catch_warnings():
        # The operations in use (products with dense matrices, moving to a device) are stable.
        warnings.filterwarnings("ignore", ".*Sparse CSR tensor support is in beta.*")
        return x.to_sparse_csr()


def sparse_rows(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Make a sparse CSR matrix from its entries in any order."""
    coo = torch.sparse_coo_tensor(torch.stack([row, column]), values, shape, check_invariants=True)
    return to_csr(coo.coalesce())


class SparseMatrix:
    """A constant sparse matrix A with its transpose: `A @ X` has a gradient for X, `A^T G`.

    Autograd's own product would transpose A in every step. Half precision is converted to float32.

    Args:
        matrix: Matrix `[rows, columns]` (sparse CSR).

    Attributes:
        rows: Offsets of each row's entries `[rows + 1]`, and their columns and values `[entries]`.
        columns: Offsets, columns and values of the transpose.
    """

    @torch.compiler.disable
    def __init__(self, matrix: Tensor) -> None:
        # `.data`, since views of the matrix cannot be compiled.
        self.rows = matrix.crow_indices().data, matrix.col_indices().data, matrix.values().data
        target, source = self.ends
        self._order = source.argsort(stable=True)
        # Counting would synchronise the device.
        nodes = torch.arange(matrix.shape[1] + 1, device=source.device)
        first = torch.searchsorted(source[self._order], nodes)
        self.columns = first, target[self._order], self.rows[2][self._order]
        # On CPU only: a comparison synchronises the device, for subgraphs in every step.
        may_be_symmetric = matrix.shape[0] == matrix.shape[1] and target.device.type == "cpu"
        if may_be_symmetric and all(map(torch.equal, self.rows, self.columns)):
            self.columns = self.rows

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Row and column of each entry: target and source of an edge, `[entries]` each."""
        first, column, _ = self.rows
        return torch.repeat_interleave(first.diff(), output_size=len(column)), column

    @property
    def degrees(self) -> Tensor:
        """Entries of each row, `[rows]`."""
        return self.rows[0].diff()

    @cached_property
    @torch.compiler.disable
    def has_empty_rows(self) -> bool:
        """Whether some row has only zeros, in a matrix without negative entries."""
        first, _, values = self.rows
        return bool((torch.segment_reduce(values, "sum", offsets=first) <= 0).any())

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """The matrix with new values `[entries]` of the same entries."""
        matrix = object.__new__(type(self))
        matrix._order = self._order
        matrix.rows = (*self.rows[:2], values)
        matrix.columns = *self.columns[:2], values[self._order]
        return matrix

    def __matmul__(self, x: Tensor) -> Tensor:
        """Product with `[columns, dim]`, `[rows, dim]`."""
        x = upcast_half(x)
        first, column, values = self.rows
        rows = first, column, values.to(x.dtype)
        first, column, values = self.columns
        return _multiply(x, *rows, first, column, values.to(x.dtype))


def _product(x: Tensor, *parts: Tensor) -> Tensor:
    """`A X` of the rows of A and of its transpose, which its derivative needs."""
    offsets, columns, values, *_ = parts
    with torch.autocast(x.device.type, enabled=False):
        if x.device.type == "cpu":
            return neighbour_sums(x, columns, offsets, values)
        shape = len(offsets) - 1, len(x)
        matrix = torch.sparse_csr_tensor(offsets, columns, values, shape, check_invariants=False)
        return matrix @ x


class _Product(torch.autograd.Function):
    """`_product`, none of whose operations has an efficient gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(*parts)
        return _product(x, *parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows = ctx.saved_tensors[:3]
        columns = ctx.saved_tensors[3:]
        return _multiply(grad, *columns, *rows), *[None] * 6


class _TransformedProduct(torch.autograd.Function):
    """`_Product` for `torch.func`; slower, since torch inspects the signature in every call."""

    @staticmethod
    def forward(x: Tensor, *parts: Tensor) -> Tensor:
        return _product(x, *parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[1:])

    backward = _Product.backward


def _multiply(*inputs: Tensor) -> Tensor:
    transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    function = _TransformedProduct if transformed else _Product
    out: Tensor = function.apply(*inputs)
    return out


def as_matrix(matrix: SparseMatrix | Tensor) -> SparseMatrix:
    """Return a `SparseMatrix` unchanged; make one from a sparse CSR tensor."""
    return matrix if isinstance(matrix, SparseMatrix) else SparseMatrix(matrix)


def neighbourhood_mean(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """Means `[rows, dim]` of vectors over the rows of a matrix of ones; 0 for an empty row."""
    return matrix @ x / matrix.degrees.clamp(min=1).unsqueeze(1)

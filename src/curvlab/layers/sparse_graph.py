"""Values that models derive from a graph once: sparse matrices, sparse features and others.

It lies on the graph (`SparseGraph`), as long as the tensors that it is made of are neither replaced
nor edited. Modules keep nothing.
"""

import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.elementwise import dropout
from curvlab.manifolds.kernels import squared_norm, upcast_half

T = TypeVar("T")

SPARSE_BELOW = 0.2
"""Fraction of non-zero features below which a processor is faster with a sparse matrix."""


def neighbour_sums(
    x: Tensor, neighbours: Tensor, offsets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """For each row the sum of its neighbours' vectors, times weights, `[rows, dim]`.

    By `embedding_bag`, whose loop over a row's entries keeps the sum in registers and fetches the
    vectors that come next: it takes half of the time of torch's sparse products for 64 numbers a
    node, four fifths where no cache holds the vectors (docs/results/speed/sparse.txt).

    Shapes: x `[nodes, dim]`; neighbours, of one row after the other, and weights (None: ones)
    `[entries]`; offsets, where each row's begin and the last one's end, `[rows + 1]`.
    """
    return F.embedding_bag(
        neighbours,
        x.contiguous(),
        offsets,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weights,
    )


def to_csr(x: Tensor) -> Tensor:
    """A dense matrix, or one of coordinates, as a sparse CSR matrix."""
    with warnings.catch_warnings():
        # What is used of CSR (products with dense matrices, moving to a device) is stable.
        warnings.filterwarnings("ignore", ".*Sparse CSR tensor support is in beta.*")
        return x.to_sparse_csr()


def sparse_rows(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR matrix from its entries in any order."""
    coo = torch.sparse_coo_tensor(torch.stack([row, column]), values, shape, check_invariants=True)
    return to_csr(coo.coalesce())


class SparseMatrix:
    """A constant sparse matrix A with its transpose: `A @ X` has a gradient for X, `A^T G`.

    Autograd's own product would transpose A in every step. Half precision is raised to float32.

    Args:
        matrix: `[rows, columns]` (sparse CSR).

    Attributes:
        rows: where each row's entries begin `[rows + 1]`, their columns and values `[entries]`.
        columns: the same of the transpose.
    """

    @torch.compiler.disable
    def __init__(self, matrix: Tensor) -> None:
        # Not views of the matrix, which no compiler takes.
        self.rows = matrix.crow_indices().data, matrix.col_indices().data, matrix.values().data
        target, source = self.ends
        self._order = source.argsort(stable=True)
        # Counting would make a device wait.
        nodes = torch.arange(matrix.shape[1] + 1, device=source.device)
        first = torch.searchsorted(source[self._order], nodes)
        self.columns = first, target[self._order], self.rows[2][self._order]
        # A comparison would make a device wait, with parts of a graph in every step.
        if target.device.type == "cpu" and matrix.shape[0] == matrix.shape[1]:
            pairs = zip(self.rows, self.columns, strict=True)
            if all(torch.equal(one, other) for one, other in pairs):
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
        """Whether the entries of some row are all 0, where none is below."""
        first, _, values = self.rows
        return bool((torch.segment_reduce(values, "sum", offsets=first) <= 0).any())

    def with_values(self, values: Tensor) -> "SparseMatrix":
        """The matrix with other values `[entries]` in the same places."""
        other = object.__new__(type(self))
        other._order, other.rows = self._order, (*self.rows[:2], values)
        other.columns = *self.columns[:2], values[self._order]
        return other

    def __matmul__(self, x: Tensor) -> Tensor:
        """Product with `[columns, dim]`, `[rows, dim]`."""
        x = upcast_half(x)
        first, column, values = self.rows
        rows = first, column, values.to(x.dtype)
        first, column, values = self.columns
        out: Tensor = _Product.apply(x, *rows, first, column, values.to(x.dtype))
        return out


class _Product(torch.autograd.Function):
    """`A X` of the rows of A and of its transpose, none of which has an efficient gradient."""

    @staticmethod
    def forward(x: Tensor, *parts: Tensor) -> Tensor:
        offsets, columns, values, *_ = parts
        with torch.autocast(x.device.type, enabled=False):
            if x.device.type == "cpu":
                return neighbour_sums(x, columns, offsets, values)
            shape = len(offsets) - 1, len(x)
            matrix = torch.sparse_csr_tensor(
                offsets, columns, values, shape, check_invariants=False
            )
            return matrix @ x

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
        return _Product.apply(grad, *columns, *rows), *[None] * 6


def as_matrix(matrix: SparseMatrix | Tensor) -> SparseMatrix:
    """A matrix as it is, or that of a sparse CSR tensor, which is then transposed."""
    return matrix if isinstance(matrix, SparseMatrix) else SparseMatrix(matrix)


def neighbourhood_mean(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """Means `[rows, dim]` of vectors over the rows of a matrix of ones; 0 of none."""
    return matrix @ x / matrix.degrees.clamp(min=1).unsqueeze(1)


class Features:
    """Features of a graph `[nodes, features]`; on a processor sparse too, if nearly all are 0.

    Those that need a gradient and those on an accelerator are dense alone.

    Attributes:
        dense: as they are.
        sparse: as a matrix; None where that is slower.
    """

    @torch.compiler.disable
    def __init__(self, dense: Tensor) -> None:
        self.dense = dense
        mostly_zero = dense.device.type == "cpu" and dense.dim() == 2 and not dense.requires_grad
        if mostly_zero:
            mostly_zero = int(torch.count_nonzero(dense)) < SPARSE_BELOW * dense.numel()
        self.sparse = SparseMatrix(to_csr(dense)) if mostly_zero else None
        self._squared_norms: Tensor | None = None

    @torch.compiler.disable
    def tensor(self) -> Tensor:
        """The dense features, from which a `FeatureLinear` in another layer finds these."""
        if self.sparse is None:
            return self.dense
        x = self.dense.detach()
        vars(x)["features"] = self
        return x

    @torch.compiler.disable
    def squared_norms(self) -> Tensor:
        """Squared norms `[nodes, 1]`, made once if they need no gradient."""
        if self.dense.requires_grad:
            return squared_norm(upcast_half(self.dense))
        if self._squared_norms is None:
            with torch.inference_mode(False), torch.no_grad():
                self._squared_norms = squared_norm(upcast_half(self.dense))
        return self._squared_norms


def as_features(x: Features | Tensor) -> Features:
    """Features as they are, or those of a tensor."""
    if isinstance(x, Features):
        return x
    found: Features | None = getattr(x, "features", None)
    return Features(x) if found is None else found


class SparseGraph:
    """Values derived from a graph; they lie on the graph, and copies start without them.

    An attribute counts as edited if another tensor is in its place, or if it has been changed in
    place (not through `.data`, which PyTorch does not record).
    """

    def __init__(self, data: Data) -> None:
        self._data = weakref.ref(data)
        self._kept: dict[Hashable, tuple[list[_Source], Any]] = {}
        self._made_from: dict[str, tuple[Sequence[str], list[_Source]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a pickled graph has its attributes alone

    @staticmethod
    @torch.compiler.disable
    def from_data(data: Data) -> "SparseGraph":
        """Return the sparse graph of a `Data`, which keeps it."""
        found: SparseGraph | None = getattr(data, "_sparse_graph", None)
        if found is not None and found._data() is data:
            return found
        own = SparseGraph(data)
        if found is not None:  # of the graph that this is a copy of, attributes among them
            own._made_from.update(found._made_from)
        data._sparse_graph = own
        return own

    @staticmethod
    def forget(data: Data) -> None:
        """Take all attributes of a graph as given."""
        data._sparse_graph = None

    @property
    def features(self) -> Features:
        return self.derive("features", ("x",), lambda data: Features(data.x))

    def matrix(self, name: str) -> SparseMatrix:
        """A sparse matrix of the graph, `adj_t` or `normalised_adj`, with its transpose."""
        return self.derive(("matrix", name), (name,), lambda data: SparseMatrix(data[name]))

    @torch.compiler.disable
    def derive(self, key: Hashable, reads: Sequence[str], make: Callable[[Data], T]) -> T:
        """Result of a function of the graph, kept until an attribute that it reads is edited.

        The key names the function and its options.
        """
        data, now = self._now(reads)
        kept = self._kept.get(key)
        if kept is None or not _same(kept[0], now):
            with torch.inference_mode(False):
                kept = self._kept[key] = now, make(data)
        made: T = kept[1]
        return made

    def remember(self, writes: Sequence[str], reads: Sequence[str]) -> None:
        """Note that attributes of the graph were made from others, as these are now."""
        self._made_from.update(dict.fromkeys(writes, (reads, self._now(reads)[1])))

    def is_outdated(self, name: str) -> bool:
        """Whether what an attribute was made from has been edited; False of one that was given.

        Tensors that have only been moved or copied are compared, once.
        """
        if name not in self._made_from:
            return False
        reads, before = self._made_from[name]
        now = self._now(reads)[1]
        if not _same(before, now):
            if not all(map(_alike, before, now)):
                return True
            self._made_from[name] = reads, now
        return False

    def _now(self, names: Sequence[str]) -> tuple[Data, list["_Source"]]:
        """The graph, and attributes of it with the number of their changes in place."""
        data = self._data()
        assert data is not None
        values = [data.get(name) for name in names]
        return data, [(value, _version(value)) for value in values]


_Source = tuple[Any, int]


def _version(value: Any) -> int:
    return value._version if isinstance(value, Tensor) and not value.is_inference() else 0


def _same(before: list[_Source], now: list[_Source]) -> bool:
    return all(x is y and m == n for (x, m), (y, n) in zip(before, now, strict=True))


def _alike(before: _Source, now: _Source) -> bool:
    """Whether a tensor has the numbers that another had."""
    (x, version), (y, _) = before, now
    if x is None or y is None or x.layout != y.layout or x.dtype != y.dtype:
        return x is y
    return _version(x) == version and torch.equal(x.cpu(), y.cpu())


class FeatureLinear(nn.Linear):
    """`torch.nn.Linear` of a graph's features after dropout, `drop(X) W^T + b`.

    Bags of words are nearly all 0. On a processor such `Features` of a graph go through a sparse
    product, and dropout draws for the entries that are not 0 alone, which is the same in
    distribution. A step on Cora's features takes a hundredth of the time. A tensor is made sparse
    at each call.

    Shapes: `[nodes, in_features] -> [nodes, out_features]`.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__(in_features, out_features, bias)
        self.dropout = dropout

    def forward(self, x: Tensor | Features) -> Tensor:
        return self.product(x, self.weight, self.bias)

    def product(self, x: Tensor | Features, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        features = as_features(x)
        if features.sparse is None:
            return F.linear(dropout(features.dense, self.dropout, self.training), weight, bias)
        matrix = features.sparse
        if self.training and self.dropout > 0:
            matrix = matrix.with_values(dropout(matrix.rows[2], self.dropout, training=True))
        out = matrix @ weight.T
        return out if bias is None else out + bias

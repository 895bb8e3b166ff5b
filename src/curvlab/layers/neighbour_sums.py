"""Sparse matrices, and their products with dense ones, on a processor faster than torch's own."""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor


def neighbour_sums(
    x: Tensor, neighbours: Tensor, offsets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """For each row the sum of its neighbours' vectors, times weights, `[rows, dim]`.

    By `embedding_bag`, whose loop over a row's entries keeps the sum in registers and fetches the
    vectors that come next: it takes half of the time of torch's sparse products for 64 numbers a
    node, four fifths where no cache holds the vectors (docs/results/speed/sparse.txt).

    Args:
        x: `[nodes, dim]`, dim at least 1.
        neighbours: Of one row after the other, int32 or int64, `[entries]`.
        offsets: Where each row's begin, and the end of the last one's, `[rows + 1]`, of the same
            type.
        weights: `[entries]`, of x's type; None for ones.
    """
    return F.embedding_bag(
        neighbours,
        x.contiguous(),
        offsets,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weights,
    )


def row_sums(x: Tensor, offsets: Tensor, columns: Tensor, values: Tensor) -> Tensor:
    """`A X` of the entries of A, row after row, and `[columns, dim]`, of one type; `[rows, dim]`.

    For use where autograd does not look: neither gets an efficient gradient.
    """
    if x.device.type == "cpu":
        return neighbour_sums(x, columns, offsets, values)
    shape = len(offsets) - 1, len(x)
    return torch.sparse_csr_tensor(offsets, columns, values, shape, check_invariants=False) @ x


def compressed(x: Tensor) -> Tensor:
    """A dense matrix, or one of coordinates, as a sparse CSR matrix."""
    with warnings.catch_warnings():
        # What is used of CSR (products with dense matrices, moving to a device) is stable.
        warnings.filterwarnings("ignore", ".*Sparse CSR tensor support is in beta.*")
        return x.to_sparse_csr()


def sparse_rows(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR matrix from its entries in any order."""
    coo = torch.sparse_coo_tensor(torch.stack([row, column]), values, shape, check_invariants=True)
    return compressed(coo.coalesce())

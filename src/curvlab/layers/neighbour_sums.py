"""Products of a sparse matrix with a dense one, on a processor faster than torch's own."""

import torch.nn.functional as F
from torch import Tensor


def neighbour_sums(
    x: Tensor, neighbours: Tensor, offsets: Tensor, weights: Tensor | None = None
) -> Tensor:
    """For each row the sum of its neighbours' vectors, times weights, `[rows, dim]`.

    By `embedding_bag`, whose loop over a row's entries keeps the sum in registers and fetches the
    vectors that come next: it takes half of the time of torch's sparse products for 64 numbers a
    node, four fifths where no cache holds the vectors (`scripts/bench.py sparse`).

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


def sparse_product(matrix: Tensor, x: Tensor) -> Tensor:
    """`A X` of a sparse CSR matrix `[rows, nodes]` and `[nodes, dim]`, of one type.

    For use where autograd does not look: neither gets an efficient gradient.
    """
    if x.device.type != "cpu":
        return matrix @ x
    return neighbour_sums(x, matrix.col_indices(), matrix.crow_indices(), matrix.values())

"""Sums over neighbours against dense products and scipy's."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array

from curvlab.layers.sparse_graph import SparseMatrix, neighbour_sums


def some_matrix(rows: int, nodes: int, density: float, dtype: type = np.float64):
    return random_array((rows, nodes), density=density, format="csr", dtype=dtype, rng=0)


@pytest.mark.parametrize("dim", [1, 3, 64, 131])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_scipy(dim, index, dtype):
    matrix = some_matrix(57, 43, 0.1)
    x = np.random.default_rng(1).standard_normal((43, dim))
    sums = neighbour_sums(
        torch.from_numpy(x).to(dtype),
        torch.from_numpy(matrix.indices).to(index),
        torch.from_numpy(matrix.indptr).to(index),
        torch.from_numpy(matrix.data).to(dtype),
    )
    assert sums.dtype == dtype
    torch.testing.assert_close(sums, torch.from_numpy(matrix @ x).to(dtype))


def test_without_weights_every_neighbour_counts_once_for_each_mention():
    x = torch.tensor([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]])
    sums = neighbour_sums(x, torch.tensor([2, 0, 2, 1]), torch.tensor([0, 3, 3, 4]))
    assert sums.tolist() == [[33, 66], [0, 0], [4, 8]]


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (4, 4)])
def test_rows_without_neighbours_are_zero(shape):
    rows, nodes = shape
    matrix = torch.zeros(rows, nodes).to_sparse_csr()
    assert torch.equal(SparseMatrix(matrix) @ torch.ones(nodes, 2), torch.zeros(rows, 2))


def test_vectors_may_be_the_columns_of_an_array():
    matrix = torch.from_numpy(some_matrix(20, 30, 0.2, np.float32).toarray())
    x = torch.randn(6, 30).T
    torch.testing.assert_close(SparseMatrix(matrix.to_sparse_csr()) @ x, matrix @ x)


def test_no_more_threads_no_other_sums():
    """A row's entries are added in their order, whatever the number of threads."""
    matrix = torch.from_numpy(some_matrix(3_000, 3_000, 0.02, np.float32).toarray())
    sparse, x = matrix.to_sparse_csr(), torch.randn(3_000, 64)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = SparseMatrix(sparse) @ x
        torch.set_num_threads(2)
        assert torch.equal(SparseMatrix(sparse) @ x, alone)
    finally:
        torch.set_num_threads(threads)

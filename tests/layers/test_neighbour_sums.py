"""Sums over neighbours against dense products and scipy's."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array

from curvlab.layers.sparse_graph import neighbour_sums


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

"""Linear maps of sparse features, and sums over neighbours, against dense ones and scipy's."""

import numpy as np
import pytest
import torch
from scipy.sparse import random_array
from torch import nn

from curvlab.graph.sparse_graph import Features
from curvlab.graph.sparse_matrix import SparseMatrix, neighbour_sums
from curvlab.layers.feature_linear import FeatureLinear
from drawn import slopes
from modes import LargestTensor

pytestmark = pytest.mark.usefixtures("float64")


def features(nodes=40, count=30, density=0.05):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, count, generator=generator)
    return torch.where(torch.rand(nodes, count, generator=generator) < density, x, 0)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.6])
@pytest.mark.parametrize("bias", [True, False])
def test_output_and_gradient_are_those_of_a_linear_layer(density, bias):
    x, made = features(density=density), FeatureLinear(30, 4, bias)
    plain = nn.Linear(30, 4, bias)
    plain.load_state_dict(made.state_dict())
    torch.testing.assert_close(made(x), plain(x))
    torch.testing.assert_close(
        slopes(made(x), made.parameters()), slopes(plain(x), plain.parameters())
    )


@pytest.mark.parametrize("density", [0.05, 0.6])
def test_dropout_zeroes_features_and_scales_the_others(density):
    """With the identity as weight the output is the features after dropout."""
    x = features(count=30, density=density)
    made = FeatureLinear(30, 30, bias=False, dropout=0.25)
    made.weight.data = torch.eye(30)
    draws = torch.stack([made(x) for _ in range(400)])
    there = x != 0
    kept = draws[:, there] / x[there]
    assert set(kept.unique().round(decimals=6).tolist()) == {0.0, round(1 / 0.75, 6)}
    assert not draws[:, ~there].any()
    torch.testing.assert_close(kept.mean(0), torch.ones(int(there.sum())), atol=0.2, rtol=0)
    made.eval()
    torch.testing.assert_close(made(x), x)


def test_sparse_features_are_never_made_dense():
    """Dropout of the whole matrix is what takes the time."""
    x, made = Features(features()), FeatureLinear(30, 4, dropout=0.5)
    made(x)
    with LargestTensor() as largest:
        made(x).sum().backward()
    assert 0 < largest.elements < x.dense.numel()


def test_mixed_precision_has_sparse_products_in_the_weights_own():
    made, x = FeatureLinear(30, 4).float(), features().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = made(x)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, made(x))
    torch.testing.assert_close(slopes(mixed, made.parameters()), slopes(made(x), made.parameters()))


def some_matrix(rows, nodes, density):
    return random_array((rows, nodes), density=density, format="csr", rng=0)


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
    matrix = torch.from_numpy(some_matrix(20, 30, 0.2).toarray())
    x = torch.randn(6, 30).T
    torch.testing.assert_close(SparseMatrix(matrix.to_sparse_csr()) @ x, matrix @ x)


def test_no_more_threads_no_other_sums():
    """A row's entries are added in their order, whatever the number of threads."""
    matrix = torch.from_numpy(some_matrix(3_000, 3_000, 0.02).toarray())
    sparse, x = matrix.to_sparse_csr(), torch.randn(3_000, 64)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = SparseMatrix(sparse) @ x
        torch.set_num_threads(2)
        assert torch.equal(SparseMatrix(sparse) @ x, alone)
    finally:
        torch.set_num_threads(threads)

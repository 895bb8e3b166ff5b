"""Tokens of a graph: the specification's path, what is stored, and what is chosen."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency, apply_transform
from curvlab.data.transforms.polynomial_tokens import PolynomialTokens
from curvlab.errors import UsageError
from graphs import both_directions

LOOPS = [
    [(1, 0), (0.5, 0.408248), (0.552749, 0.476290)],
    [(0, 1), (0.741582, 0.666667), (0.834595, 0.475028)],
    [(1, 1), (1.149830, 0.258418), (1.205385, 0.270904)],
    [(2, -1), (1.408248, -0.091752), (1.173540, 0.059623)],
]


def path():
    x = torch.tensor([[1.0, 0], [0, 1], [1, 1], [2, -1]])
    return Data(x, both_directions([(0, 1), (1, 2), (2, 3)]), num_nodes=4)


def tokens(data, basis="mono", orders=2, self_loops=True, dtype="float32"):
    return PolynomialTokens(basis, orders, self_loops, dtype, 16, False)(data).tokens


def test_the_path_with_self_loops():
    torch.testing.assert_close(tokens(path()), torch.tensor(LOOPS), atol=1e-6, rtol=0)


def test_chebyshev_on_the_laplacian_itself_would_be_another():
    found = tokens(path(), "cheb", self_loops=False)
    torch.testing.assert_close(found[0, 2], torch.tensor([0.707107, 0.707107]))  # not 2.7, -2.1


def test_nodes_without_neighbours():
    data = Data(x=torch.tensor([[3.0], [1.0], [1.0]]), edge_index=torch.tensor([[1, 2], [2, 1]]))
    assert tokens(data, "mono", 4)[0, :, 0].tolist() == [3, 3, 3, 3, 3]
    assert tokens(data, "cheb", 4, self_loops=False)[0, :, 0].tolist() == [3, 0, -3, 0, 3]


@pytest.mark.parametrize(
    ("features", "dim", "dtype", "allowed", "stored"),
    [
        (300, 128, "float32", True, False),  # 1,200 bytes a token against 2 * 512
        (200, 128, "float32", True, True),
        (300, 128, "float16", True, True),
        (300, 128, "float32", False, True),  # mini-batches have tokens
    ],
)
def test_what_takes_less_memory_is_chosen(features, dim, dtype, allowed, stored, tmp_path):
    data = path()
    data.x = torch.ones(4, features)
    transform = PolynomialTokens("mono", 2, True, dtype, dim, allowed)
    prepared = apply_transform(transform, data, tmp_path)
    assert ("tokens" in prepared) == stored
    assert ("normalised_adj" in prepared) != stored
    assert isinstance(transform.resolve(data), PolynomialTokens if stored else NormalisedAdjacency)


def test_what_a_type_cannot_hold_is_said():
    data = path()
    data.x *= 1e5
    with pytest.raises(UsageError, match="float16 holds no number above"):
        tokens(data, dtype="float16")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_features_that_are_not_finite_are_no_matter_of_the_type(dtype):
    data = path()
    data.x[0] = torch.nan
    assert bool(tokens(data, dtype=dtype).isnan().any())

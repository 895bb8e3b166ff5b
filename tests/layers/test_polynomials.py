"""Recursions of the two bases against their definitions, and the specification's path graph."""

import numpy as np
import pytest
import torch

from curvlab.layers.spectral_filters import polynomials, response

A = torch.tensor([0.5**0.5, 0.5, 0.5**0.5], dtype=torch.float64)
A = torch.diag(A, 1) + torch.diag(A, -1)  # the path 0-1-2-3, normalised
X = torch.tensor([[1.0, 0], [0, 1], [1, 1], [2, -1]], dtype=torch.float64)
EXPECTED = {
    "mono": [
        [(1, 0), (0, 0.707107), (0.853553, 0.353553)],
        [(0, 1), (1.207107, 0.5), (0.707107, 0.396447)],
        [(1, 1), (1.414214, -0.207107), (1.103553, 0.75)],
        [(2, -1), (0.707107, 0.707107), (1, -0.146447)],
    ],
    "cheb": [
        [(1, 0), (0, -0.707107), (0.707107, 0.707107)],
        [(0, 1), (-1.207107, -0.5), (1.414214, -0.207107)],
        [(1, 1), (-1.414214, 0.207107), (1.207107, 0.5)],
        [(2, -1), (-0.707107, -0.707107), (0, 0.707107)],
    ],
}


def tokens(basis, orders, a=A, x=X):
    return torch.stack(list(polynomials(basis, orders, x, a.matmul)))


@pytest.mark.parametrize("basis", EXPECTED)
def test_the_path_of_the_specification(basis):
    expected = torch.tensor(EXPECTED[basis], dtype=torch.float64).transpose(0, 1)
    torch.testing.assert_close(tokens(basis, 2), expected, atol=1e-6, rtol=0)


def test_chebyshev_polynomials_are_those_of_minus_a_and_stay_small():
    values, vectors = torch.linalg.eigh(A)
    for order, found in enumerate(tokens("cheb", 14)):
        polynomial = torch.cos(order * torch.acos((-values).clamp(-1, 1)))
        torch.testing.assert_close(found, vectors @ (polynomial[:, None] * (vectors.T @ X)))
        assert (found.norm(dim=0) <= X.norm(dim=0) + 1e-12).all()


def test_the_response_is_what_the_filter_does_to_eigenvectors():
    values, vectors = torch.linalg.eigh(A)
    alpha = torch.randn(2, 6, dtype=torch.float64)
    for basis in EXPECTED:
        filtered = torch.einsum("sk,knm->snm", alpha, tokens(basis, 5, x=vectors))
        expected = response(basis, alpha, 1 - values)
        torch.testing.assert_close(filtered, vectors * expected[:, None, :])


def test_the_response_in_closed_form():
    laplacian = torch.linspace(0, 2, 9, dtype=torch.float64)
    for k in range(5):
        alpha = torch.eye(5, dtype=torch.float64)[k]
        mono, cheb = (response(basis, alpha, laplacian) for basis in EXPECTED)
        torch.testing.assert_close(mono, (1 - laplacian) ** k)
        numpy = np.polynomial.chebyshev.chebval(laplacian.numpy() - 1, alpha.numpy())
        torch.testing.assert_close(cheb, torch.from_numpy(numpy))

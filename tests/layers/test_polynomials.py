"""Recursions of the two bases against their definitions on a path graph."""

import numpy as np
import torch

from curvlab.layers.spectral_filters import polynomials, response

A = torch.tensor([0.5**0.5, 0.5, 0.5**0.5], dtype=torch.float64)
A = torch.diag(A, 1) + torch.diag(A, -1)  # the path 0-1-2-3, normalised
X = torch.tensor([[1.0, 0], [0, 1], [1, 1], [2, -1]], dtype=torch.float64)
BASES = ("mono", "cheb")


def tokens(basis, orders, a=A, x=X):
    return torch.stack(list(polynomials(basis, orders, x, a.matmul)))


def test_chebyshev_polynomials_are_those_of_minus_a_and_stay_small():
    values, vectors = torch.linalg.eigh(A)
    for order, found in enumerate(tokens("cheb", 14)):
        polynomial = torch.cos(order * torch.acos((-values).clamp(-1, 1)))
        torch.testing.assert_close(found, vectors @ (polynomial[:, None] * (vectors.T @ X)))
        assert (found.norm(dim=0) <= X.norm(dim=0) + 1e-12).all()


def test_the_response_is_what_the_filter_does_to_eigenvectors():
    values, vectors = torch.linalg.eigh(A)
    alpha = torch.randn(2, 6, dtype=torch.float64)
    for basis in BASES:
        filtered = torch.einsum("sk,knm->snm", alpha, tokens(basis, 5, x=vectors))
        expected = response(basis, alpha, 1 - values)
        torch.testing.assert_close(filtered, vectors * expected[:, None, :])


def test_the_response_in_closed_form():
    laplacian = torch.linspace(0, 2, 9, dtype=torch.float64)
    for k in range(5):
        alpha = torch.eye(5, dtype=torch.float64)[k]
        mono, cheb = (response(basis, alpha, laplacian) for basis in BASES)
        torch.testing.assert_close(mono, (1 - laplacian) ** k)
        numpy = np.polynomial.chebyshev.chebval(laplacian.numpy() - 1, alpha.numpy())
        torch.testing.assert_close(cheb, torch.from_numpy(numpy))

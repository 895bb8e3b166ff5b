"""Recursions of the two bases, and PolyAttn: Theorem 3.1 on a path graph, loops over orders."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from curvlab.graph.polynomials import polynomials
from curvlab.layers import PolynomialAttention, SharedCoefficients
from curvlab.layers import polynomial_attention as module
from curvlab.layers.spectral_filters import response
from drawn import slopes

A = torch.tensor([0.5**0.5, 0.5, 0.5**0.5], dtype=torch.float64)
A = torch.diag(A, 1) + torch.diag(A, -1)  # the path 0-1-2-3, normalised
X = torch.tensor([[1.0, 0], [0, 1], [1, 1], [2, -1]], dtype=torch.float64)
BASES = ("mono", "cheb")
pytestmark = pytest.mark.usefixtures("float64")


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


W_Q, W_K = torch.tensor([[1, 0.5], [-0.5, 1]]), torch.tensor([[0.3, -0.2], [0.4, 0.6]])
LOOPS = torch.tensor([[0.5, 0.408248290463863, 0, 0], [0.408248290463863, 1 / 3, 1 / 3, 0],
                      [0, 1 / 3, 1 / 3, 0.408248290463863], [0, 0, 0.408248290463863, 0.5]],
                     dtype=torch.float64)  # fmt: skip


def bare(heads, orders=2, power=1.0):
    """The filter of the worked examples: no networks, no norm, no residual."""
    attention = PolynomialAttention(orders, 2, heads, 1.0, power, 0.0, False, False)
    attention.mlp = nn.Identity()
    with torch.no_grad():
        attention.query.weight.copy_(W_Q.T)
        attention.key.weight.copy_(W_K.T)
    return attention


@pytest.mark.parametrize(("basis", "a"), [("mono", A), ("mono", LOOPS), ("cheb", A)])
@torch.no_grad()
def test_theorem_3_1_in_numbers(basis, a):
    """The output is the filter of each node's coefficients, a polynomial of the operator."""
    h = tokens(basis, 2, a)
    attention = bare(heads=1)
    alpha, z = attention.coefficients(h).squeeze(1), attention(h).sum(0)
    values, vectors = torch.linalg.eigh(a)
    powers = torch.stack([values**k for k in range(3)])
    if basis == "cheb":
        powers[1:] = torch.stack([-values, 2 * values**2 - 1])
    filters = torch.einsum("ni,ki,mi->knm", vectors, powers, vectors)
    expected = torch.stack([(alpha[i] @ filters[:, i]) @ X for i in range(4)])
    torch.testing.assert_close(z, expected, atol=1e-12, rtol=0)


def by_loops(attention, tokens):
    """The same, node by node, order by order, head by head."""
    orders, nodes, dim = tokens.shape
    width = dim // attention.heads
    out = []
    for node in range(nodes):
        v = attention.norm(tokens[:, node])
        t = []
        for k in range(orders):
            mlp = attention.mlp
            hidden = torch.relu(v[k] @ mlp.weight1[k] + mlp.bias1[k, 0])
            t.append(hidden @ mlp.weight2[k] + mlp.bias2[k, 0])
        q, key = (torch.stack(t) @ w.weight.T for w in (attention.query, attention.key))
        heads = []
        for head in range(attention.heads):
            of = slice(head * width, (head + 1) * width)
            rows = []
            for i in range(orders):
                row = 0
                for j in range(orders):
                    score = torch.tanh(q[i, of] @ key[j, of] / math.sqrt(width))
                    row = row + score * attention.beta[head, j] / (j + 1) ** 1.4 * v[j, of]
                rows.append(row)
            heads.append(torch.stack(rows))
        out.append(tokens[:, node] + torch.cat(heads, dim=1))
    return torch.stack(out, dim=1)


@pytest.mark.parametrize("entries", [1, 2**18], ids=["a node a block", "one block"])
@pytest.mark.parametrize("heads", [3, 2], ids=["as they are", "padded"])
def test_values_and_gradients_are_those_of_loops(monkeypatch, entries, heads):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", entries)
    attention = PolynomialAttention(5, 12, heads, 1.5, 1.4, 0.0, True, True)
    for parameter in (attention.beta, attention.norm.weight):
        nn.init.normal_(parameter)
    h = torch.randn(6, 7, 12).requires_grad_()
    of = [h, *attention.parameters()]
    found, expected = attention(h), by_loops(attention, h)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(slopes(found, of), slopes(expected, of))


@torch.no_grad()
def test_unifilter_is_the_same_filter_for_all():
    h = tokens("mono", 4)
    uniform = SharedCoefficients(4, 2, "mono")
    assert uniform.alpha.abs().sum() == pytest.approx(1)
    expected = sum(a * x for a, x in zip(uniform.alpha, h, strict=True))
    torch.testing.assert_close(uniform(h).sum(0), expected)
    assert SharedCoefficients(4, 2, "cheb").alpha.tolist() == [1] * 5
    assert (uniform.coefficients(h) == uniform.alpha).all()

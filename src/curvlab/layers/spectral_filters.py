"""Polynomial filters with learned coefficients that all nodes share."""

from math import cos, pi

import torch
import torch.nn.functional as F
from scipy.special import comb
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.graph.polynomials import polynomials
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix
from curvlab.options import NonNegativeInt, Share


class GPRFilter(Checked, nn.Module):
    """Generalised PageRank, `Z = sum_k gamma_k A^k Y`, with coefficients of any sign.

    Initial coefficients are those of a personalised PageRank, `alpha (1 - alpha)^k`, and
    `(1 - alpha)^orders` for the last.

    Shapes: signals `[nodes, dim]`, adjacency A `[nodes, nodes]` (sparse CSR, normalised with
    self-loops); returns `[nodes, dim]`.

    Args:
        orders: highest power of A.
        alpha: teleport probability of the personalised PageRank that initialises the coefficients.

    Source: Chien et al. 2021, "Adaptive universal generalized PageRank graph neural network".
    """

    def __init__(self, orders: NonNegativeInt = 10, alpha: Share = 0.1) -> None:
        super().__init__()
        gamma = alpha * (1 - alpha) ** torch.arange(orders + 1.0)
        gamma[-1] = (1 - alpha) ** orders
        self.gamma = nn.Parameter(gamma)

    def forward(self, y: Tensor, adjacency: Tensor | SparseMatrix) -> Tensor:
        powers = polynomials("mono", len(self.gamma) - 1, y, as_matrix(adjacency).__matmul__)
        return _weighted_sum(self.gamma, list(powers))


class BernsteinFilter(Checked, nn.Module):
    r"""Bernstein polynomials of the Laplacian `L = I - A` with non-negative coefficients.

    `Z = sum_k relu(theta_k) binom(K, k) 2^-K (2I - L)^(K-k) L^k Y`, whose value at eigenvalue
    `2 k / K` is about `theta_k`; all ones are the identity. Horner's rule in `2I - L` needs K
    products instead of `K^2 / 2`.

    Shapes: as in `GPRFilter`, A without self-loops.

    Args:
        orders: highest order K.

    Source: He et al. 2021, "BernNet".
    """

    def __init__(self, orders: NonNegativeInt = 10) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.ones(orders + 1))
        binomials = comb(orders, range(orders + 1)) / 2.0**orders
        weights = torch.tensor(binomials, dtype=self.theta.dtype)
        self.binomials = nn.Buffer(weights, persistent=False)

    def forward(self, y: Tensor, adjacency: Tensor | SparseMatrix) -> Tensor:
        adjacency = as_matrix(adjacency)
        weights = F.relu(self.theta) * self.binomials
        power = y
        total = weights[0] * y
        for weight in weights[1:]:
            moved = adjacency @ torch.cat([power, total], dim=1)
            moved_power, moved_total = moved.chunk(2, dim=1)
            power = power - moved_power
            total = total + moved_total + weight * power
        return total


class ChebyshevInterpolation(Checked, nn.Module):
    r"""Chebyshev interpolation of a filter whose values at the nodes are learned.

    With `x_j = cos((K - j + 1/2) pi / (K + 1))`, `c_k = 2 / (K + 1) sum_j relu(theta_j) T_k(x_j)`,

        Z = c_0 / 2 Y + sum_(k >= 1) c_k T_k(-A) Y;  all ones are the identity.

    Shapes: as in `GPRFilter`, A without self-loops.

    Args:
        orders: highest order K.

    Source: He et al. 2022, "Convolutional neural networks on graphs with Chebyshev approximation,
    revisited" (ChebNetII).
    """

    def __init__(self, orders: NonNegativeInt = 10) -> None:
        super().__init__()
        count = orders + 1
        self.theta = nn.Parameter(torch.ones(count))
        angles = [(orders - j + 0.5) * pi / count for j in range(count)]
        values = [[2 / count * cos(k * angle) for angle in angles] for k in range(count)]
        transform = torch.tensor(values, dtype=self.theta.dtype)
        transform[0] /= 2
        self.transform = nn.Buffer(transform, persistent=False)

    def forward(self, y: Tensor, adjacency: Tensor | SparseMatrix) -> Tensor:
        terms = polynomials("cheb", len(self.theta) - 1, y, as_matrix(adjacency).__matmul__)
        return _weighted_sum(self.transform @ F.relu(self.theta), list(terms))


def _weighted_sum(weights: Tensor, terms: list[Tensor]) -> Tensor:
    """`sum_k w_k X_k`."""
    stacked = torch.stack(terms)
    return (weights.to(stacked.dtype) @ stacked.flatten(1)).view_as(terms[0])


def response(basis: str, coefficients: Tensor, eigenvalues: Tensor) -> Tensor:
    """The filter `h(l) = sum_k a_k g_k` at eigenvalues l of the Laplacian `I - A`, from 0 to 2.

    Shapes: coefficients `[..., orders + 1]`, eigenvalues `[points]`; returns `[..., points]`.
    """
    values = polynomials(
        basis, coefficients.shape[-1] - 1, torch.ones_like(eigenvalues), (1 - eigenvalues).mul
    )
    return coefficients @ torch.stack(list(values))

"""Polynomials of a graph's operator, applied to signals by their recursions."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor


def polynomials(
    basis: str, orders: int, x: Tensor, product: Callable[[Tensor], Tensor]
) -> Iterator[Tensor]:
    """`g_0(A) x, ..., g_orders(A) x`, one after the other, by products with A alone.

    `mono`: `h_k = A h_(k-1)`. `cheb`: `h_1 = -A x`, `h_k = -2 A h_(k-1) - h_(k-2)`, the polynomials
    of `L - I = -A` with spectrum in [-1, 1]; on L itself, with spectrum to 2, they would explode
    (`T_14(2)` is 5e7). Source: PolyFormer, Table 1, with the operator of its code.

    Args:
        basis: `mono` or `cheb`.
        orders: highest order, at least 0.
        x: signals, whatever `product` takes.
        product: multiplies signals by A.
    """
    yield x
    before, now = x, x
    for order in range(1, orders + 1):
        after = product(now)
        if basis == "cheb":
            after = -after if order == 1 else -2 * after - before
        before, now = now, after
        yield now


def response(basis: str, coefficients: Tensor, eigenvalues: Tensor) -> Tensor:
    """The filter `h(l) = sum_k a_k g_k` at eigenvalues l of the Laplacian `I - A`, from 0 to 2.

    Args:
        basis: see `polynomials`.
        coefficients: `[..., orders + 1]`.
        eigenvalues: `[points]`.

    Returns:
        `[..., points]`.
    """
    values = polynomials(
        basis, coefficients.shape[-1] - 1, torch.ones_like(eigenvalues), (1 - eigenvalues).mul
    )
    return coefficients @ torch.stack(list(values))

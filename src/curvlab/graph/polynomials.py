"""Polynomials of a graph's adjacency matrix, by their recurrences."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from torch import Tensor

Signal = TypeVar("Signal", Tensor, np.ndarray)


def polynomials(
    basis: str, orders: int, x: Signal, product: Callable[[Signal], Signal]
) -> Iterator[Signal]:
    """Yield `g_0(A) x, ..., g_orders(A) x`, computed by products with A.

    `mono`: `h_k = A h_(k-1)`. `cheb`: `h_1 = -A x`, `h_k = -2 A h_(k-1) - h_(k-2)`, the polynomials
    of `L - I = -A` with spectrum in [-1, 1]. Source: PolyFormer, Table 1, with the operator of its
    code.
    """
    yield x
    previous = x
    current = x
    for order in range(1, orders + 1):
        new = next_polynomial(basis, order, product(current), previous)
        previous = current
        current = new
        yield current


def next_polynomial(basis: str, order: int, product: Signal, previous: Signal) -> Signal:
    """`g_order(A) x` from the product `A g_(order - 1)(A) x` and `previous`, `g_(order - 2)(A) x`.

    `previous` is ignored if the recurrence does not need it, as for the first order.
    """
    if basis == "mono":
        return product
    if order == 1:
        return -product
    return -2 * product - previous

"""Euclidean distances of all pairs, by a matrix product."""

from torch import Tensor

from curvlab.manifolds.products import product

# Below it the root's derivative would be large; a distance of 1e-6 is none.
SMALLEST = 1e-12


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_i - y_j|^2 `[n, m]` of `[n, dim]` and `[m, dim]`, by a matrix product, above 0."""
    lengths = x.square().sum(-1, keepdim=True), y.square().sum(-1)
    return (lengths[0] + lengths[1] - 2 * product(x, y.T)).clamp(min=SMALLEST)

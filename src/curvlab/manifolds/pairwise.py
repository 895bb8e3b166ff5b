"""All distances between two sets of points, through matrix products and in bounded memory.

With alpha_i = 1 / (1 + kappa |x_i|^2) and beta_j = 1 / (1 + kappa |y_j|^2), the squared chords are
u_ij^2 = alpha_i beta_j |x_i - y_j|^2, and the distance is 2 arsin_k(u_ij). Neighbours at radius r
differ by e^-r of their coordinates: at radius 15 their squared difference is below the rounding of
one float64 product, so that two products are used (`difference_factors`). Other operations are
elementwise in the requested dtype. Rows are processed in blocks, so that temporary results stay in
a CPU's cache, and memory does not grow with the number of points if no derivative is recorded.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds.curved_trig import safe_sqrt

_BLOCK_ELEMENTS = {"cpu": 2**16, "cuda": 2**24}
"""Number of pairs in a block: temporaries fit in a CPU's cache; a GPU needs few large launches."""


def difference_factors(x: Tensor, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Factors of |x_i - y_j|^2 in two products; the first is exact and the other small.

    Points are split at a power of two: x = h + l, where h has so few digits that all sums of
    |h_x - h_y|^2 are exact. The rest is a number for each point and -2 (l_x . y + h_x . l_y), whose
    rounding is about 2^-22 of that of one product. That rounding is subtracted from the numbers, so
    that a point's distance to itself is below zero and clamped to exactly zero.
    """
    dim = x.shape[-1]
    eps = torch.finfo(x.dtype).eps
    largest_x = _largest_coordinate(x)
    largest_y = _largest_coordinate(y)
    bits = (51 - dim.bit_length()) // 2
    exponent = torch.frexp(torch.maximum(largest_x, largest_y)).exponent - bits
    unit = torch.exp2(exponent.to(x.dtype))
    exact = []
    rest = []
    for p in (x, y):
        high = (p.detach() / unit).round() * unit
        low = p - high
        size = p.detach().square().sum(-1, keepdim=True).sqrt()
        rest_size = low.detach().square().sum(-1, keepdim=True).sqrt()
        slack = eps * (3 + math.sqrt(dim) / 2) * size * rest_size
        exact.append((high, high.square().sum(-1, keepdim=True)))
        rest.append((low, (low * (high + p)).sum(-1, keepdim=True) - slack))
    (h, h2), (k, k2) = exact
    (low, c), (low_y, c_y) = rest
    one = torch.ones_like(c)
    one_y = torch.ones_like(c_y)
    left = [torch.cat([-2 * h, h2, one], -1), torch.cat([-2 * low, -2 * h, c, one], -1)]
    right = [torch.cat([k, one_y, k2], -1), torch.cat([y, low_y, one_y, c_y], -1)]
    return left, right


def _largest_coordinate(x: Tensor) -> Tensor:
    """Largest absolute coordinate of points `[..., n, dim]`, `[..., 1, 1]`; 0 without points."""
    with_zeros = F.pad(x.detach().abs(), (0, 0, 0, 1))
    return with_zeros.amax((-2, -1), True)


def _squared(left: list[Tensor], right: list[Tensor]) -> Tensor:
    exact, rest = (a @ b.mT for a, b in zip(left, right, strict=True))
    return (exact + rest).clamp(min=0)


def squared_differences(x: Tensor, y: Tensor) -> Tensor:
    """|x_i - y_j|^2 `[..., n, m]` of float64 points `[..., n, dim]` and `[..., m, dim]`."""
    return _squared(*difference_factors(x, y))


def pairwise_power(
    x: Tensor, alpha: Tensor, y: Tensor, beta: Tensor, kappa: Tensor, power: int, dtype: torch.dtype
) -> Tensor:
    """Distances (power 1) or squared distances (power 2) `[..., n, m]` of the given `dtype`.

    `x` `[..., n, dim]`, `alpha` `[..., n, 1]`, `y` `[..., m, dim]`, `beta` `[..., m, 1]` and
    `kappa` `[...]` are float64; u_ij^2 = alpha_i beta_j |x_i - y_j|^2.
    """
    k = kappa[..., None, None]
    left, right = difference_factors(x, y)

    def rows(block: slice) -> Tensor:
        squared = _squared([part[..., block, :] for part in left], right)
        squared = squared * alpha[..., block, :] * beta.mT
        z = squared * k
        ratio = trig.arsin_ratio(z.to(dtype), (1 - z).clamp(min=0).to(dtype))
        squared = squared.to(dtype)
        return 4 * squared * ratio.square() if power == 2 else 2 * safe_sqrt(squared) * ratio

    n = x.shape[-2]
    pairs_per_row = kappa.numel() * y.shape[:-1].numel()
    at_once = max(1, _BLOCK_ELEMENTS.get(x.device.type, 2**24) // max(pairs_per_row, 1))
    if n <= at_once or torch.compiler.is_compiling():
        return rows(slice(None))
    blocks = [rows(slice(start, start + at_once)) for start in range(0, n, at_once)]
    return torch.cat(blocks, dim=-2)

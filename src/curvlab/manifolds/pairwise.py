"""All distances between two sets of points, through matrix products and in bounded memory.

With alpha_i = 1 / (1 + kappa |x_i|^2) and beta_j likewise, the squared chords are
u_ij^2 = alpha_i beta_j |x_i - y_j|^2, and the distance is 2 arsin_k(u_ij). Neighbours at radius r
differ by e^-r of their coordinates: at radius 15 their squared difference is below the rounding of
one float64 product, so that it is taken from two (`difference_factors`); the rest is elementwise in
the dtype asked for. Rows are processed in blocks, so that what is kept is u^2 and the result, and
temporary memory does not grow with the number of points.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds.curved_trig import tolerance

_BLOCK_ELEMENTS = {"cpu": 2**16, "cuda": 2**24}
"""Pairs in a block: its temporaries stay in a CPU's cache; a GPU wants few large launches."""


def _block_rows(like: Tensor, rows: int, pairs_per_row: int) -> int:
    """Rows of one block; a compiler fuses the elementwise part itself and gets all rows at once."""
    if torch.compiler.is_compiling():
        return max(rows, 1)
    return max(1, _BLOCK_ELEMENTS.get(like.device.type, 2**24) // max(pairs_per_row, 1))


def _from_chords(squared: Tensor, complement: Tensor, z: Tensor, power: int) -> Tensor:
    """(2 arsin_k(u))^power from u^2, z = kappa u^2 and 1 - z, elementwise."""
    ratio = trig.arsin_ratio(z, complement)
    return 4 * squared * ratio.square() if power == 2 else 2 * squared.sqrt() * ratio


class _PairwisePower(Function):
    """(2 arsin_k(u_ij))^power, `[..., n, m]` in `dtype`; see `pairwise_power`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        alpha: Tensor,
        y: Tensor,
        beta: Tensor,
        kappa: Tensor,
        power: int,
        dtype: torch.dtype,
    ) -> Tensor:
        k = kappa[..., None, None]
        n, m = x.shape[-2], y.shape[-2]
        batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2], kappa.shape)
        result = x.new_empty((*batch, n, m), dtype=dtype)
        chords = x.new_empty((*batch, n, m), dtype=dtype)
        rows = _block_rows(x, n, math.prod(batch) * m)
        left, right = difference_factors(x, y)
        factor = alpha.expand(*batch, n, 1)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            squared = _squared([part[..., block, :] for part in left], right)
            squared = (squared * factor[..., block, :]).mul_(beta.mT)
            z = squared * k
            complement = (1 - z).clamp_(min=0)
            squared = squared.to(dtype)
            chords[..., block, :] = squared
            result[..., block, :] = _from_chords(squared, complement.to(dtype), z.to(dtype), power)
        ctx.save_for_backward(x, alpha, y, beta, kappa, chords, result)
        ctx.power = power
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise RuntimeError(
                "Pairwise distances are differentiable once: for create_graph=True use the "
                "distance by rows, dist(x[:, None], y[None], kappa)."
            )
        (g,) = grads
        x, alpha, y, beta, kappa, chords, result = ctx.saved_tensors
        k = kappa[..., None, None].to(g.dtype)
        n, m = x.shape[-2], y.shape[-2]
        batch = result.shape[:-2]
        # With weights w of u^2, that by x_i is 2 alpha_i sum_j w_ij beta_j (x_i - y_j).
        of_x, of_y = torch.cat([x * alpha, alpha], -1), torch.cat([y * beta, beta], -1)
        pull_x = x.new_empty((*batch, *of_x.shape[-2:]))
        pull_y = y.new_zeros((*batch, *of_y.shape[-2:]))
        g_alpha, g_beta = alpha.new_empty((*batch, n)), beta.new_zeros((*batch, m))
        g_kappa = kappa.new_zeros(batch)
        rows = _block_rows(x, n, math.prod(batch) * m)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            pairs = chords[..., block, :], result[..., block, :], k, ctx.power
            weight = _chord_gradient(*pairs).mul_(g[..., block, :])
            by_scale = weight * pairs[0]
            g_alpha[..., block] = by_scale.sum(-1, dtype=x.dtype)
            g_beta += by_scale.sum(-2, dtype=x.dtype)
            weight = weight.to(x.dtype)
            pull_x[..., block, :] = weight @ of_y
            pull_y += weight.mT @ of_x[..., block, :]
            if ctx.needs_input_grad[4]:
                by_kappa = _kappa_gradient(*pairs).mul_(g[..., block, :])
                g_kappa += by_kappa.sum((-2, -1), dtype=kappa.dtype)
        return (
            _weighted_differences(x, alpha, pull_x).sum_to_size(x.shape),
            (g_alpha.unsqueeze(-1) / alpha).sum_to_size(alpha.shape),
            _weighted_differences(y, beta, pull_y).sum_to_size(y.shape),
            (g_beta.unsqueeze(-1) / beta).sum_to_size(beta.shape),
            g_kappa.sum_to_size(kappa.shape),
            None,
            None,
        )


def _weighted_differences(x: Tensor, alpha: Tensor, pull: Tensor) -> Tensor:
    """2 alpha (x W - sum of w y), from `pull`, the sum and W side by side."""
    return 2 * alpha * torch.addcmul(-pull[..., :-1], x, pull[..., -1:])


def _chord_gradient(squared: Tensor, result: Tensor, kappa: Tensor, power: int) -> Tensor:
    """Derivative of (2 arsin_k(u))^power with respect to u^2, elementwise.

    d(2 u S)/d(u^2) = 1 / (u sqrt(1 - z)) and d(4 u^2 S^2)/d(u^2) = 4 S / sqrt(1 - z), where the
    ratio S = arsin_k(u) / u is taken from the result: nothing transcendental is left.
    """
    z = kappa * squared
    root = (1 - z).clamp_(min=tolerance(z.dtype).floor).rsqrt_()
    distinct = squared > 0
    safe = torch.where(distinct, squared, 1.0)
    if power == 2:
        return torch.where(distinct, result / safe, 4.0).sqrt_().mul_(root).mul_(2)
    return torch.where(distinct, safe.rsqrt_().mul_(root), 0.0)


def _kappa_gradient(squared: Tensor, result: Tensor, kappa: Tensor, power: int) -> Tensor:
    """Derivative of (2 arsin_k(u))^power with respect to kappa, u held, elementwise."""
    distance = result.sqrt() if power == 2 else result
    chord = squared.sqrt()
    ratio = torch.where(squared > 0, distance / (2 * chord), 1.0)
    # squared * slope stays finite where squared * chord would not.
    by_kappa = 2 * chord * (squared * trig.arsin_slope(kappa * squared, ratio))
    return 2 * distance * by_kappa if power == 2 else by_kappa


def difference_factors(x: Tensor, y: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Factors of |x_i - y_j|^2 in two products, of which the first is exact and the other small.

    Points are split at a power of two: x = h + l, where h has so few digits that all sums of
    |h_x - h_y|^2 are exact. The rest is a number for each point and -2 (l_x . y + h_x . l_y), whose
    rounding is some 2^-22 of that of one product. The numbers are shortened by that rounding, so
    that a point's distance to itself comes out below zero and is clamped to exactly zero.

    Args:
        x: float64, `[..., n, dim]`.
        y: float64, `[..., m, dim]`.
    """
    dim, eps = x.shape[-1], torch.finfo(x.dtype).eps
    # The row of zeros is for no points at all.
    largest = [F.pad(p.detach().abs(), (0, 0, 0, 1)).amax((-2, -1), True) for p in (x, y)]
    bits = (51 - dim.bit_length()) // 2
    unit = torch.exp2((torch.frexp(torch.maximum(*largest)).exponent - bits).to(x.dtype))
    exact, rest = [], []
    for p in (x, y):
        high = (p.detach() / unit).round() * unit
        low = p - high
        size, rest_size = (v.detach().square().sum(-1, keepdim=True).sqrt() for v in (p, low))
        slack = eps * (3 + math.sqrt(dim) / 2) * size * rest_size
        exact.append((high, high.square().sum(-1, keepdim=True)))
        rest.append((low, (low * (high + p)).sum(-1, keepdim=True) - slack))
    (h, h2), (k, k2) = exact
    (low, c), (low_y, c_y) = rest
    one, one_y = torch.ones_like(c), torch.ones_like(c_y)
    left = [torch.cat([-2 * h, h2, one], -1), torch.cat([-2 * low, -2 * h, c, one], -1)]
    right = [torch.cat([k, one_y, k2], -1), torch.cat([y, low_y, one_y, c_y], -1)]
    return left, right


def _squared(left: list[Tensor], right: list[Tensor]) -> Tensor:
    exact, rest = (a @ b.mT for a, b in zip(left, right, strict=True))
    return exact.add_(rest).clamp_(min=0)


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
    return _PairwisePower.apply(x, alpha, y, beta, kappa, power, dtype)

"""All distances between two sets of points, through one matrix product and in bounded memory.

With alpha_i = 1 / (1 + kappa |x_i|^2) and beta_j likewise, the squared chords are one product,
u_ij^2 = alpha_i beta_j |x_i - y_j|^2 = U_i . V_j with U_i = alpha_i (-2 x_i, |x_i|^2, 1) and
V_j = beta_j (y_j, 1, |y_j|^2), and the distance is 2 arsin_k(u_ij). The product is taken in
float64, because the digits of |x_i - y_j|^2 that cancel are those that separate near neighbours;
the rest is elementwise in the dtype asked for. Rows are processed in blocks, so that what is kept
is u^2 and the result, and temporary memory does not grow with the number of points.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import trigonometry as trig
from curvlab.manifolds.tolerances import tolerance

_BLOCK_ELEMENTS = {"cpu": 2**18, "cuda": 2**24}
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
    """(2 arsin_k(sqrt(U_i . V_j)))^power, `[..., n, m]` in `dtype` from float64 factors."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, v: Tensor, kappa: Tensor, power: int, dtype: torch.dtype
    ) -> Tensor:
        k = kappa[..., None, None]
        n, m = u.shape[-2], v.shape[-2]
        batch = torch.broadcast_shapes(u.shape[:-2], v.shape[:-2], kappa.shape)
        result = u.new_empty((*batch, n, m), dtype=dtype)
        chords = u.new_empty((*batch, n, m), dtype=dtype)
        rows = _block_rows(u, n, math.prod(batch) * m)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            squared = (u[..., block, :] @ v.mT).clamp_(min=0)
            z = squared * k
            complement = (1 - z).clamp_(min=0)
            squared = squared.to(dtype)
            chords[..., block, :] = squared
            result[..., block, :] = _from_chords(squared, complement.to(dtype), z.to(dtype), power)
        ctx.save_for_backward(u, v, kappa, chords, result)
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
        u, v, kappa, chords, result = ctx.saved_tensors
        k = kappa[..., None, None].to(g.dtype)
        n, m = u.shape[-2], v.shape[-2]
        batch = result.shape[:-2]
        g_u = u.new_empty((*batch, *u.shape[-2:]))
        g_v = v.new_zeros((*batch, *v.shape[-2:]))
        g_kappa = kappa.new_zeros(batch)
        rows = _block_rows(u, n, math.prod(batch) * m)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            pairs = chords[..., block, :], result[..., block, :], k, ctx.power
            weight = _chord_gradient(*pairs).mul_(g[..., block, :]).to(u.dtype)
            g_u[..., block, :] = weight @ v
            g_v += weight.mT @ u[..., block, :]
            if ctx.needs_input_grad[2]:
                by_kappa = _kappa_gradient(*pairs).mul_(g[..., block, :])
                g_kappa += by_kappa.sum((-2, -1), dtype=kappa.dtype)
        return (
            g_u.sum_to_size(u.shape),
            g_v.sum_to_size(v.shape),
            g_kappa.sum_to_size(kappa.shape),
            None,
            None,
        )


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


def factors(x: Tensor, alpha: Tensor, y: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Factors U `[..., n, dim + 2]`, V `[..., m, dim + 2]` of alpha_i beta_j |x_i - y_j|^2.

    All float64. The squared norms are shortened by about the rounding error of the product, so
    that a point's distance to itself comes out below zero and is clamped to exactly zero.
    """
    shorten = 1 - torch.finfo(x.dtype).eps * (2 + math.sqrt(x.shape[-1]))
    x2 = shorten * x.square().sum(-1, keepdim=True)
    y2 = shorten * y.square().sum(-1, keepdim=True)
    u = torch.cat([-2 * x, x2, torch.ones_like(x2)], -1) * alpha
    v = torch.cat([y, torch.ones_like(y2), y2], -1) * beta
    return u, v


def pairwise_power(
    x: Tensor, alpha: Tensor, y: Tensor, beta: Tensor, kappa: Tensor, power: int, dtype: torch.dtype
) -> Tensor:
    """Distances (power 1) or squared distances (power 2) `[..., n, m]` of the given `dtype`.

    `x` `[..., n, dim]`, `alpha` `[..., n, 1]`, `y` `[..., m, dim]`, `beta` `[..., m, 1]` and
    `kappa` `[...]` are float64; u_ij^2 = alpha_i beta_j |x_i - y_j|^2.
    """
    return _PairwisePower.apply(*factors(x, alpha, y, beta), kappa, power, dtype)

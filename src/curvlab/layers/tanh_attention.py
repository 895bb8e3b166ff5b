"""Attention over the tokens of single nodes with tanh for softmax, whose scores are never kept."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

BLOCK_ENTRIES = 2**18
"""Scores held at a time on a processor: what its cache holds."""

LIBRARY_PRODUCT = 400
"""Multiplications a matrix from which on torch leaves a processor's batched products to MKL."""


def tanh_attention(
    query: Tensor, key: Tensor, values: Tensor, bias: Tensor, kept: Tensor | None, heads: int
) -> Tensor:
    """`(tanh(Q K^T) * bias * kept) V` of every node and head, `[orders + 1, nodes, dim]`.

    On a processor queries and keys may be of another type than the values, whose type is computed
    in.

    Args:
        query: `[orders + 1, nodes, dim]`, scaled.
        key: Likewise.
        values: Likewise.
        bias: What the column of each order is multiplied by, `[heads, 1, orders + 1]`.
        kept: Which scores dropout keeps, `[nodes, heads, orders + 1, orders + 1]`; None for all.
        heads: Which divide the width.
    """
    return _TanhAttention.apply(query, key, values, bias, kept, heads)


def by_node_and_head(x: Tensor, heads: int, padding: int = 0) -> Tensor:
    """`[orders + 1, nodes, heads * width]` as `[nodes * heads, orders + 1, width + padding]`."""
    view = x.unflatten(-1, (heads, -1)).flatten(1, 2).transpose(0, 1)
    return F.pad(view, (0, padding)) if padding else view


class _TanhAttention(torch.autograd.Function):
    """`(tanh(Q K^T) * kept) (bias * V)`, whose scores are made twice and never kept.

    Of 10,000 nodes with 8 heads and 11 orders the scores of a layer take 39 MB, and autograd would
    keep several copies; those of a block of nodes stay in the cache.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        values: Tensor,
        bias: Tensor,
        kept: Tensor | None,
        heads: int,
    ) -> Tensor:
        """`[orders + 1, nodes, dim]` from three of these, and a bias `[heads, 1, orders + 1]`."""
        ctx.save_for_backward(query, key, values, bias, kept)
        ctx.heads = heads
        out = torch.empty_like(values)
        padding = _padding(values, heads)
        for part in _blocks(values, heads):
            q, k, v = (
                by_node_and_head(x[:, part], heads, padding).to(values.dtype)
                for x in (query, key, values)
            )
            scores = torch.bmm(q, k.transpose(1, 2)).tanh_()
            if kept is not None:
                scores *= kept[part].flatten(0, 1)
            _put(out[:, part], torch.bmm(scores, _weighted(v, bias)), heads)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of everything but what is kept."""
        *inputs, bias, kept = ctx.saved_tensors
        heads = ctx.heads
        grads = [torch.empty_like(x) for x in inputs]
        grad_bias = torch.zeros_like(bias)
        padding = _padding(grad, heads)
        for part in _blocks(grad, heads):
            q, k, v, g = (
                by_node_and_head(x[:, part], heads, padding).to(grad.dtype) for x in (*inputs, grad)
            )
            scores = tanh = torch.bmm(q, k.transpose(1, 2)).tanh_()
            slope = torch.bmm(g, _weighted(v, bias).transpose(1, 2))
            if kept is not None:
                mask = kept[part].flatten(0, 1).to(tanh.dtype)
                scores = tanh * mask
                slope *= mask
            inner = torch.ops.aten.tanh_backward(slope, tanh)
            of_weighted = torch.bmm(scores.transpose(1, 2), g)
            products = (
                torch.bmm(inner, k),
                torch.bmm(inner.transpose(1, 2), q),
                _weighted(of_weighted, bias),
            )
            for out, product in zip(grads, products, strict=True):
                _put(out[:, part], product, heads)
            of_bias = (of_weighted * v).sum(-1, dtype=bias.dtype)
            grad_bias += of_bias.unflatten(0, (-1, heads)).sum(0).unsqueeze(1)
        return *grads, grad_bias, None, None


def _blocks(tokens: Tensor, heads: int) -> Iterator[slice]:
    """Blocks of the nodes of `[orders + 1, nodes, dim]`; on a GPU one of them all."""
    orders, nodes, _ = tokens.shape
    size = max(1, nodes)
    if tokens.device.type == "cpu":
        size = max(1, BLOCK_ENTRIES // (heads * orders**2))
    return (slice(start, start + size) for start in range(0, nodes, size))


def _padding(tokens: Tensor, heads: int) -> int:
    """Zeros that make heads wide enough for a library's products, where they double them at most.

    Torch's own loop takes up to five times as long for heads of two numbers as MKL for four.
    """
    orders, _, dim = tokens.shape
    width, needed = dim // heads, math.ceil(LIBRARY_PRODUCT / orders**2)
    return needed - width if tokens.device.type == "cpu" and width < needed <= 2 * width else 0


def _weighted(values: Tensor, bias: Tensor) -> Tensor:
    """Values `[nodes * heads, orders + 1, width]`, each order's times its bias.

    It is the same as to multiply the scores of that order, of which there are more.
    """
    nodes = len(values) // len(bias)
    return values * bias.transpose(1, 2).to(values.dtype).repeat(nodes, 1, 1)


def _put(target: Tensor, x: Tensor, heads: int) -> None:
    """Write what is by nodes and heads, without its padding, into tokens by orders."""
    view = by_node_and_head(target, heads)
    view.copy_(x[..., : view.shape[-1]])

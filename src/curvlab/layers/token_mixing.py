"""The mixing of each node's tokens by PolyAttn, in C++ (`curvlab.cpp`).

Batched products of small matrices leave a processor idle: here 16 nodes are computed at a time.
Scores are computed again in the backward pass, so that they take no memory.
"""

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.cpp import ARRAY, INTEGER, Library, differentiate_plain, pointers

_INPUTS = [*[ARRAY] * 5, *[INTEGER] * 4]

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "mix": [*_INPUTS, ARRAY, INTEGER],
        "mix_backward": [*_INPUTS, *[ARRAY] * 5, INTEGER],
    },
)

Mix = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], Tensor]


def mix_tokens(
    library: ctypes.CDLL,
    plain: Mix,
    query: Tensor,
    key: Tensor,
    values: Tensor,
    bias: Tensor,
    mask: Tensor | None,
) -> Tensor:
    """`curvlab.layers.polynomial_attention.mix_tokens`, which is `plain`."""
    mixed: Tensor = _TokenMixing.apply(library, plain, mask, query, key, values, bias)
    return mixed


class _TokenMixing(Function):
    @staticmethod
    def forward(
        ctx: Any, library: ctypes.CDLL, plain: Mix, mask: Tensor | None, *inputs: Tensor
    ) -> Tensor:
        arrays = [tensor.contiguous() for tensor in inputs]
        mask = None if mask is None else mask.contiguous()
        out = torch.empty_like(arrays[2])
        shape = _shape(*arrays[2:])
        library.mix(*pointers(*arrays, mask), *shape, out.data_ptr(), torch.get_num_threads())
        ctx.save_for_backward(*inputs, mask)
        ctx.inputs = len(inputs)
        ctx.library = library
        ctx.plain = plain
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask = ctx.saved_tensors
        before = [None] * 3
        if torch.is_grad_enabled():
            needs = ctx.needs_input_grad[len(before) :]
            plain = partial(ctx.plain, mask=mask)
            return *before, *differentiate_plain(ctx, plain, grads, needs)
        arrays = [tensor.contiguous() for tensor in inputs]
        grad = grads[0].contiguous()
        gradients = [torch.empty_like(array) for array in arrays[:3]]
        sums = grad.new_zeros(inputs[3].shape, dtype=torch.float64)
        call = *pointers(*arrays, mask), *_shape(*arrays[2:]), *pointers(grad, *gradients, sums)
        ctx.library.mix_backward(*call, torch.get_num_threads())
        return *before, *gradients, sums.to(grad.dtype)


def _shape(values: Tensor, bias: Tensor) -> tuple[int, int, int, int]:
    """Numbers of tokens, nodes and heads, and the width of a head."""
    tokens, nodes, dim = values.shape
    heads = len(bias)
    return tokens, nodes, heads, dim // heads

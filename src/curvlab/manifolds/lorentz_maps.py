"""Maps of points of the Lorentz model in C++, one pass forward and one backward.

Points are `[..., 1 + dim]` in float32; curvature, weight and scale are `[]`. Computations are in
float64. The caller passes the plain form of each function, which gives second derivatives.
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.cpp import ARRAY, DOUBLE, INTEGER, Library, differentiate_plain, pointers

_ROWS = [INTEGER, INTEGER]
_ONE = [ARRAY, ARRAY, *_ROWS, DOUBLE]
_TWO = [*[ARRAY] * 4, *_ROWS]
_SCALED = [*[ARRAY] * 3, *_ROWS, DOUBLE, DOUBLE]

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "from_space": [ARRAY, ARRAY, *_ROWS, ARRAY, INTEGER],
        "from_space_backward": [ARRAY, ARRAY, *_ROWS, *[ARRAY] * 3, INTEGER],
        "normalise": [*_ONE, ARRAY, INTEGER],
        "normalise_backward": [*_ONE, *[ARRAY] * 3, INTEGER],
        "midpoint": [*_TWO, ARRAY, INTEGER],
        "midpoint_backward": [*_TWO, *[ARRAY] * 4, INTEGER],
        "sigmoid_time": [*_SCALED, ARRAY, INTEGER],
        "sigmoid_time_backward": [*_SCALED, *[ARRAY] * 3, INTEGER],
        "pair_inner": [*[ARRAY] * 3, *_ROWS, ARRAY, INTEGER],
        "pair_inner_backward": [*[ARRAY] * 3, *_ROWS, ARRAY, ARRAY],
    },
)


def functions(points: Sequence[Tensor], *numbers: Tensor | float) -> ctypes.CDLL | None:
    """The library for points of one shape and numbers `[]`; None if plain forms must be used."""
    tensors = [number for number in numbers if isinstance(number, Tensor)]
    shapes = {point.shape for point in points}
    if len(shapes) > 1 or points[0].numel() == 0 or any(number.dim() for number in tensors):
        return None
    return LIBRARY.functions(*points, *tensors)


class _Map(Function):
    """One of the maps, whose inputs are points followed by numbers, such as the curvature.

    `limits` are numbers without a derivative, `added` is the number of coordinates that the results
    have more than the points.
    """

    @staticmethod
    def forward(
        ctx: Any,
        library: ctypes.CDLL,
        name: str,
        plain: Callable[..., Tensor],
        limits: tuple[float, ...],
        count: int,
        added: int,
        *inputs: Tensor,
    ) -> Tensor:
        arrays = [tensor.contiguous() for tensor in inputs]
        *leading, width = arrays[0].shape
        out = arrays[0].new_empty(*leading, width + added)
        shape = _rows(out)
        results = out.data_ptr(), torch.get_num_threads()
        getattr(library, name)(*pointers(*arrays), *shape, *limits, *results)
        ctx.save_for_backward(*inputs)
        ctx.library = library
        ctx.name = name
        ctx.plain = plain
        ctx.limits = limits
        ctx.inputs = len(inputs)
        ctx.count = count
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        before = [None] * 6
        if torch.is_grad_enabled():
            needs = ctx.needs_input_grad[len(before) :]
            return *before, *differentiate_plain(ctx, ctx.plain, grads, needs)
        arrays = [tensor.contiguous() for tensor in ctx.saved_tensors]
        points = arrays[: ctx.count]
        numbers = arrays[ctx.count :]
        grad = grads[0].contiguous()
        gradients = [torch.empty_like(point) for point in points]
        sums = points[0].new_zeros(len(numbers), dtype=torch.float64)
        call = *pointers(*arrays), *_rows(grad), *ctx.limits, *pointers(grad, *gradients, sums)
        getattr(ctx.library, f"{ctx.name}_backward")(*call, torch.get_num_threads())
        return *before, *gradients, *sums.to(grad.dtype)


def _rows(points: Tensor) -> tuple[int, int]:
    """Number of rows, and of coordinates without the time."""
    return points.shape[:-1].numel(), points.shape[-1] - 1


def from_space(
    library: ctypes.CDLL, plain: Callable[..., Tensor], space: Tensor, kappa: Tensor
) -> Tensor:
    """`lorentz.from_space`."""
    out: Tensor = _Map.apply(library, "from_space", plain, (), 1, 1, space, kappa)
    return out


def normalise(
    library: ctypes.CDLL, plain: Callable[..., Tensor], m: Tensor, kappa: Tensor, floor: float
) -> Tensor:
    """`lorentz.normalise`, with a length of at least `floor` times the squared time."""
    out: Tensor = _Map.apply(library, "normalise", plain, (floor,), 1, 0, m, kappa)
    return out


def midpoint(
    library: ctypes.CDLL,
    plain: Callable[..., Tensor],
    x: Tensor,
    y: Tensor,
    kappa: Tensor,
    weight: Tensor,
) -> Tensor:
    """`lorentz.midpoint`."""
    out: Tensor = _Map.apply(library, "midpoint", plain, (), 2, 0, x, y, kappa, weight)
    return out


def sigmoid_time(
    library: ctypes.CDLL,
    plain: Callable[..., Tensor],
    h: Tensor,
    kappa: Tensor,
    scale: Tensor,
    limits: tuple[float, float],
) -> Tensor:
    """`curvlab.layers.hybonet.SigmoidTime`; `limits` are its time offset and `SMALLEST`."""
    out: Tensor = _Map.apply(library, "sigmoid_time", plain, limits, 1, 0, h, kappa, scale)
    return out


class _PairInner(Function):
    """Lorentzian products of pairs of points."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, library: ctypes.CDLL, pairs: Tensor) -> Tensor:
        x = points.contiguous()
        pairs = pairs.contiguous()
        out = x.new_empty(pairs.shape[1])
        call = *pointers(x, *pairs), len(out), x.shape[1] - 1, out.data_ptr()
        library.pair_inner(*call, torch.get_num_threads())
        ctx.save_for_backward(points, pairs)
        ctx.inputs = 1
        ctx.library = library
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        points, pairs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *differentiate_plain(ctx, lambda x: _products(x, pairs), grads), None, None
        x = points.contiguous()
        grad = grads[0].contiguous()
        gradient = torch.zeros_like(x)
        shape = pairs.shape[1], x.shape[1] - 1
        ctx.library.pair_inner_backward(*pointers(x, *pairs), *shape, *pointers(grad, gradient))
        return gradient, None, None


def _products(points: Tensor, pairs: Tensor) -> Tensor:
    x = points.index_select(0, pairs[0])
    y = points.index_select(0, pairs[1])
    signed = torch.cat([-x[..., :1], x[..., 1:]], -1)
    return torch.linalg.vecdot(signed, y)


def pair_inner(library: ctypes.CDLL, points: Tensor, pairs: Tensor) -> Tensor:
    """Lorentzian products `[pairs]` of points `[nodes, 1 + dim]` by their numbers `[2, pairs]`."""
    out: Tensor = _PairInner.apply(points, library, pairs)
    return out

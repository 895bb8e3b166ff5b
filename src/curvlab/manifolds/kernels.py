"""Differentiable kernels under the geometry: few passes over the points, exact derivatives.

Here curvatures are tensors that already carry the broadcast last axis, `[..., 1]`. The backward
passes consist of differentiable operations on the saved inputs, so second derivatives are right.
They accumulate in place where they can: a fresh array costs more than the arithmetic on it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.errors import UsageError
from curvlab.manifolds.curved_trig import tolerance


def working(x: Tensor) -> Tensor:
    """Half-precision points are computed with in float32.

    Raises:
        UsageError: The points are whole numbers.
    """
    if x.dtype in (torch.float32, torch.float64):
        return x
    _check_floating(x)
    return x.float()


def _check_floating(x: Tensor) -> None:
    # Results have the type of the points: they would be cut to whole numbers.
    if not x.is_floating_point():
        raise UsageError(f"points are of type {x.dtype}: make them floating-point, as by x.float()")


def shortened(x: Tensor) -> Tensor:
    """Vectors whose squares would overflow, shortened: to the functions here they are infinite."""
    limit = 1e-3 * math.sqrt(torch.finfo(x.dtype).max)
    longest = torch.linalg.vector_norm(x.detach(), torch.inf, dim=-1, keepdim=True)
    return x * (limit / longest.clamp(min=limit))


def curvature_like(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """The curvature as a tensor `[..., 1]` that broadcasts against points.

    Raises:
        UsageError: The points are whole numbers.
    """
    _check_floating(x)
    if isinstance(kappa, Tensor):
        return kappa.to(dtype).unsqueeze(-1)
    return x.new_full((1,), kappa, dtype=dtype)


_CACHED_ELEMENTS = 2**19


def by_rows(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """`function(x, y)` of points, by as many at a time as fit a cache where that can be.

    On a CPU, where no derivative is recorded, what is made between input and output of many points
    then never leaves the cache: an operation of a dozen passes takes the time of its input and
    output alone.

    Args:
        function: maps points `[n, width]` twice to points of the same shape, each by itself.
        x: points `[..., width]`.
        y: of the same shape.
    """
    pieces = x.device.type == "cpu" and x.shape == y.shape and x.numel() > _CACHED_ELEMENTS
    if not pieces or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return function(x, y)
    rows, width = max(1, _CACHED_ELEMENTS // x.shape[-1]), x.shape[-1]
    x_rows, y_rows = x.reshape(-1, width), y.reshape(-1, width)
    out = torch.empty_like(x_rows)
    parts = (part.split(rows) for part in (x_rows, y_rows, out))
    for a, b, into in zip(*parts, strict=True):
        into.copy_(function(a, b))
    return out.view(x.shape)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product over the last axis, which is kept with length one."""
    return (x * y).sum(-1, keepdim=True)


def join_last(*parts: Tensor) -> Tensor:
    """Concatenation over the last axis in the first part's layout in memory, if it can be known."""
    # The strides of a gradient are not known where its function is compiled.
    if parts[0].dim() < 2 or (not torch.compiler.is_compiling() and parts[0].stride(-1) == 1):
        return torch.cat(parts, dim=-1)
    return torch.cat([part.mT for part in parts], dim=-2).mT


def compiled_rows(x: Tensor) -> bool:
    """Whether code that is being compiled for a processor has the points of `x` side by side.

    x is `[..., points, dim]`. A gradient's layout in memory is not known while its function is
    compiled; it is that of the points.
    """
    if not torch.compiler.is_compiling() or x.device.type != "cpu" or x.dim() < 2:
        return False
    return x.stride(-1) != 1


def combination(rows: bool, *terms: tuple[Tensor, Tensor]) -> Tensor:
    """Sum of vectors times numbers, `[..., points, dim]` and `[..., points, 1]`.

    Left to itself a compiler for processors writes the formulas of the numbers into the loop over
    the vectors, square roots and divisions for every coordinate, and puts the few coordinates of a
    point side by side. With `rows`, from `compiled_rows`, it does neither.
    """
    numbers = [_in_memory(number) if rows else number for _, number in terms]
    total = terms[0][0] * numbers[0]
    for (vectors, _), number in zip(terms[1:], numbers[1:], strict=True):
        total.addcmul_(vectors, number)
    return in_rows(total) if rows else total


def in_rows(x: Tensor) -> Tensor:
    """The same vectors `[..., points, dim]`, in compiled code with the points side by side."""
    return _in_memory(x.mT).mT


def _in_memory(x: Tensor) -> Tensor:
    """The same, made before what reads it: for given strides the compiler needs it in memory."""
    strides = [math.prod(x.shape[axis + 1 :]) for axis in range(x.dim())]
    return x.contiguous().as_strided(x.shape, strides)


class _SumOfRowProducts(Function):
    """`sum_of_products` where `compiled_rows` is true of both."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x.mT @ in_rows(y)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return (grads[0] @ y.mT).mT, (grads[0].mT @ x.mT).mT


def sum_of_products(x: Tensor, y: Tensor) -> Tensor:
    """`X^T Y`, `[..., points, n], [..., points, m] -> [..., n, m]`."""
    if compiled_rows(x) and compiled_rows(y):
        return _SumOfRowProducts.apply(x, y)
    return x.mT @ y


def squared_norm(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """|x|^2 over the last axis, which is kept, accumulated and returned in `dtype`.

    Where no derivative is recorded it is the square of a norm, which needs no temporary array (nor
    does the sum once compiled); on a CPU a wider `dtype` does (of the size of its input), so that
    is done in pieces that fit a cache: fresh memory costs more than the arithmetic.
    """
    # With the points side by side in memory a norm would jump from coordinate to coordinate.
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or x.stride(-1) != 1:
        wide = x.to(dtype or x.dtype)
        return dot(wide, wide)
    pieces: tuple[Tensor, ...] = (x,)
    widens = dtype not in (None, x.dtype) and x.device.type == "cpu"
    if widens and x.dim() > 1 and x.numel() > _CACHED_ELEMENTS:
        pieces = x.split(max(1, _CACHED_ELEMENTS * x.shape[0] // x.numel()))
    norms = [torch.linalg.vector_norm(p, dim=-1, keepdim=True, dtype=dtype) for p in pieces]
    return (norms[0] if len(norms) == 1 else torch.cat(norms)).square()


def floored_gap(z: Tensor, dtype: torch.dtype) -> Tensor:
    """1 + z, not smaller than for any point of the given dtype that is inside the ball."""
    return (1 + z).clamp(min=tolerance(dtype).floor)


def gap_arguments(x: Tensor, kappa: Tensor, wide: bool = True) -> tuple[Tensor, Tensor]:
    """Z = kappa |x|^2 and 1 + z > 0, both through float64 if `wide`.

    Near the rim of the ball 1 + z has fewer digits than z by its own size: at distance 10 from the
    origin it is 2e-4, and one float32 rounding of |x|^2 would be an error of 3e-4 in it. Points
    that have been projected stay where it is at least 8e-3 and the error at most 1e-5.
    """
    dtype = torch.float64 if wide else x.dtype
    z = kappa.to(dtype) * squared_norm(x, dtype)
    return z.to(x.dtype), floored_gap(z, x.dtype).to(x.dtype)


def gap(x: Tensor, kappa: Tensor, wide: bool = True) -> Tensor:
    """1 + kappa |x|^2, kept positive for points that rounding has put on the rim of the ball."""
    return gap_arguments(x, kappa, wide)[1]


class _SquaredNorms(Function):
    """|x - y|^2, |x|^2 and |y|^2 in float64, without keeping float64 copies of the points."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        wide = torch.float64
        return squared_norm(x - y, wide), squared_norm(x, wide), squared_norm(y, wide)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        g_difference, g_x2, g_y2 = (2 * g for g in grads)
        pull = (x - y) * g_difference.to(x.dtype)
        g_x = torch.addcmul(pull.sum_to_size(x.shape), x, g_x2.to(x.dtype))
        g_y = pull.neg_().sum_to_size(y.shape).addcmul_(y, g_y2.to(y.dtype))
        return g_x, g_y


def squared_norms(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """|x - y|^2, |x|^2, |y|^2 of points `[..., dim]` as float64 `[..., 1]`.

    Distances need more digits of 1 - |x|^2 than float32 has: at distance 10 from the origin of
    the ball it is 2e-4, and one rounding of |x|^2 would be an error of 3e-4 in it.
    """
    return _SquaredNorms.apply(x, y)

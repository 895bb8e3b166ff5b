"""Maps of tokens on products of stereographic models in C++, one pass forward and one backward.

Tokens are `[tokens, dim]` in the layout of `curvlab.layers.stereographic`, with curvatures
`[components]`. Each function here computes a method of `curvlab.manifolds.Stereographic`. The plain
forms, in operations on tensors, are used for second derivatives and for vectors whose squares
overflow.
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
from curvlab.manifolds import curved_trig as trig
from curvlab.manifolds import gyro, kernels

_POINTS = [ARRAY, ARRAY, INTEGER, INTEGER, INTEGER]
_SUM = [ARRAY, *_POINTS]

LIBRARY = Library(
    Path(__file__).with_suffix(".cpp"),
    {
        "radial": [*_POINTS, INTEGER, *[ARRAY] * 4, INTEGER],
        "radial_backward": [*_POINTS, INTEGER, *[ARRAY] * 5, INTEGER],
        "exp_sum": [*_SUM, *[ARRAY] * 3, INTEGER],
        "exp_sum_backward": [*_SUM, *[ARRAY] * 5, INTEGER],
        "mobius_add": [*_SUM, *[ARRAY] * 2, INTEGER],
        "mobius_add_backward": [*_SUM, *[ARRAY] * 5, INTEGER],
        "half_quotient": [*_POINTS, INTEGER, *[ARRAY] * 2, INTEGER],
        "half_quotient_backward": [*_POINTS, INTEGER, *[ARRAY] * 4, INTEGER],
    },
)

_RATIOS: list[Callable[[Tensor], Any]] = [
    trig.tan_and_log_ratio,
    trig.tan_rim_ratio,
    trig.log_rim_ratio,
    partial(trig.artan_ratio, projected=True),
]
EXP_AND_LOG, EXP, CLAMP, LOG = range(4)
"""Kinds of maps along the rays from the origin; each is an index of its ratio."""

_CONSTANTS = torch.tensor(trig.single_precision_constants(), dtype=torch.float32)


def applies(x: Tensor, kappa: Tensor) -> bool:
    """Whether tokens are `[tokens, dim]` and split into one block for each curvature."""
    return x.dim() == 2 and kappa.dim() == 1 and len(x) > 0 and x.shape[1] % len(kappa) == 0


def _lay_out(x: Tensor) -> Tensor:
    """Contiguous `[..., dim, tokens]` from `[..., tokens, dim]`."""
    return x.detach().mT.contiguous()


def _shape(x: Tensor, kappa: Tensor) -> tuple[int, int, int]:
    """Components, width of a block, and tokens of `[tokens, dim]`."""
    return len(kappa), x.shape[1] // len(kappa), x.shape[0]


def _end() -> tuple[int, int]:
    """The last arguments of the functions."""
    return _CONSTANTS.data_ptr(), torch.get_num_threads()


def _blocks(x: Tensor, kappa: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks `[components, tokens, block]`, and curvatures that broadcast against them."""
    return x.unflatten(-1, (len(kappa), -1)).movedim(-2, 0), kappa[:, None, None]


def _join(blocks: Tensor) -> Tensor:
    return blocks.movedim(0, -2).flatten(-2)


class _Radial(Function):
    """Tangent vectors or points times a ratio of kappa times their squared norm."""

    @staticmethod
    def forward(
        ctx: Any, v: Tensor, kappa: Tensor, functions: ctypes.CDLL, kind: int
    ) -> tuple[Tensor, ...]:
        x = _lay_out(v)
        out = [torch.empty_like(x) for _ in range(2 if kind == EXP_AND_LOG else 1)]
        saved = x.new_empty(2 * len(out), len(kappa), x.shape[1])
        results = pointers(*out, *[None] * (2 - len(out)), saved)
        call = *pointers(x, kappa), *_shape(v, kappa), kind, *results, *_end()
        ctx.overflows = bool(functions.radial(*call))
        ctx.save_for_backward(v, kappa, x, saved)
        ctx.inputs = 2
        ctx.functions = functions
        ctx.kind = kind
        if ctx.overflows:
            return _Radial.plain(kind, v.detach(), kappa)
        return tuple(array.mT for array in out)

    @staticmethod
    def plain(kind: int, v: Tensor, kappa: Tensor) -> tuple[Tensor, ...]:
        blocks, k = _blocks(v, kappa)
        if kind != LOG:
            blocks = kernels.shorten(blocks)
        ratios = _RATIOS[kind](k * kernels.squared_norm(blocks))
        ratios = ratios if kind == EXP_AND_LOG else (ratios,)
        return tuple(_join(blocks * ratio) for ratio in ratios)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() or ctx.overflows:
            plain = partial(_Radial.plain, ctx.kind)
            return *differentiate_plain(ctx, plain, grads), None, None
        v, kappa, x, saved = ctx.saved_tensors
        grad_v = torch.empty_like(x)
        grad_kappa = torch.zeros_like(kappa)
        first, *second = map(_lay_out, grads)
        results = pointers(first, *(second or (None,)), saved, grad_v, grad_kappa)
        call = *pointers(x, kappa), *_shape(v, kappa), ctx.kind, *results
        ctx.functions.radial_backward(*call, torch.get_num_threads())
        return grad_v.mT, grad_kappa, None, None


def radial(functions: ctypes.CDLL, v: Tensor, kappa: Tensor, kind: int) -> tuple[Tensor, ...]:
    """A map along rays; for `EXP_AND_LOG` both the exponential and its logarithm."""
    out: tuple[Tensor, ...] = _Radial.apply(v, kappa, functions, kind)
    return out


class _ExpSum(Function):
    """`gyro.exp_sum`, or its `mean_vectors` and `tangent_scale` (see `Stereographic`)."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, v: Tensor, kappa: Tensor, functions: ctypes.CDLL, mean: bool
    ) -> tuple[Tensor, ...]:
        x = _lay_out(u)
        y = v.contiguous()
        components, block, tokens = _shape(u, kappa)
        out = x.new_empty(components, block + mean, tokens)
        scale = x.new_empty(components, 1, tokens) if mean else None
        call = *pointers(x, y, kappa), components, block, tokens, *pointers(out, scale)
        ctx.overflows = bool(functions.exp_sum(*call, *_end()))
        ctx.save_for_backward(u, v, kappa, x)
        ctx.inputs = 3
        ctx.functions = functions
        ctx.mean = mean
        if ctx.overflows:
            return _ExpSum.plain(mean, u.detach(), v.detach(), kappa)
        return (out.flatten(0, 1).mT,) if scale is None else (out.mT, scale.mT)

    @staticmethod
    def plain(mean: bool, u: Tensor, v: Tensor, kappa: Tensor) -> tuple[Tensor, ...]:
        x, k = _blocks(u, kappa)
        y, _ = _blocks(v[None], kappa)
        points = gyro.exp_sum(x, y, k)
        if not mean:
            return (_join(points),)
        scale = 1 / kernels.conformal_denominator(points, k)
        return torch.cat([2 * scale * points, 2 * scale - 1], dim=-1), scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() or ctx.overflows:
            plain = partial(_ExpSum.plain, ctx.mean)
            return *differentiate_plain(ctx, plain, grads), None, None
        u, v, kappa, x = ctx.saved_tensors
        components, block, tokens = _shape(u, kappa)
        grad_u = torch.empty_like(x)
        grad_rest = x.new_zeros(components, block + 1)
        y = v.contiguous()
        grad, *scale = map(_lay_out, grads)
        arrays = pointers(grad, *(scale or (None,)), grad_u, grad_rest)
        call = *pointers(x, y, kappa), components, block, tokens, *arrays
        ctx.functions.exp_sum_backward(*call, *_end())
        return grad_u.mT, grad_rest[:, :-1].flatten(), grad_rest[:, -1], None, None


def exp_sum(functions: ctypes.CDLL, u: Tensor, v: Tensor, kappa: Tensor) -> Tensor:
    """exp_0(u) (+) exp_0(v) of tokens u and one vector v `[dim]`."""
    out: Tensor = _ExpSum.apply(u, v, kappa, functions, False)[0]
    return out


def exp_sum_means(
    functions: ctypes.CDLL, u: Tensor, v: Tensor, kappa: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean vectors `[components, tokens, block + 1]` and scale of `exp_sum`."""
    out: tuple[Tensor, Tensor] = _ExpSum.apply(u, v, kappa, functions, True)
    return out


class _MobiusAdd(Function):
    """The projected Moebius sum, `gyro.mobius_add`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, kappa: Tensor, functions: ctypes.CDLL) -> Tensor:
        a = _lay_out(x)
        b = _lay_out(y)
        out = torch.empty_like(a)
        call = *pointers(a, b, kappa), *_shape(x, kappa), out.data_ptr()
        functions.mobius_add(*call, *_end())
        ctx.save_for_backward(x, y, kappa, a, b)
        ctx.inputs = 3
        ctx.functions = functions
        return out.mT

    @staticmethod
    def plain(x: Tensor, y: Tensor, kappa: Tensor) -> Tensor:
        a, k = _blocks(x, kappa)
        b, _ = _blocks(y, kappa)
        return _join(gyro.mobius_add(a, b, k, projected=True))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return *differentiate_plain(ctx, _MobiusAdd.plain, grads), None
        x, _, kappa, a, b = ctx.saved_tensors
        grad = _lay_out(grads[0])
        gradients = torch.empty_like(a), torch.empty_like(b), torch.zeros_like(kappa)
        call = *pointers(a, b, kappa), *_shape(x, kappa), *pointers(grad, *gradients)
        ctx.functions.mobius_add_backward(*call, *_end())
        return gradients[0].mT, gradients[1].mT, gradients[2], None


def mobius_add(functions: ctypes.CDLL, x: Tensor, y: Tensor, kappa: Tensor) -> Tensor:
    """Projected Moebius sum of tokens."""
    out: Tensor = _MobiusAdd.apply(x, y, kappa, functions)
    return out


class _HalfQuotient(Function):
    """`gyro.half_quotient` of sums `[components, tokens, block + 1]`, as tokens."""

    @staticmethod
    def forward(
        ctx: Any, sums: Tensor, kappa: Tensor, functions: ctypes.CDLL, published: bool
    ) -> Tensor:
        s = _lay_out(sums)
        components, width, tokens = s.shape
        out = s.new_empty(components * (width - 1), tokens)
        shape = components, width - 1, tokens
        functions.half_quotient(*pointers(s, kappa), *shape, published, out.data_ptr(), *_end())
        ctx.save_for_backward(sums, kappa, s)
        ctx.inputs = 2
        ctx.functions = functions
        ctx.published = published
        return out.mT

    @staticmethod
    def plain(published: bool, sums: Tensor, kappa: Tensor) -> Tensor:
        return _join(gyro.half_quotient(sums, kappa[:, None, None], published))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            plain = partial(_HalfQuotient.plain, ctx.published)
            return *differentiate_plain(ctx, plain, grads), None, None
        _, kappa, s = ctx.saved_tensors
        components, width, tokens = s.shape
        grad = _lay_out(grads[0])
        grad_kappa = torch.zeros_like(kappa)
        grad_sums = torch.empty_like(s)
        arrays = pointers(grad, grad_sums, grad_kappa)
        shape = components, width - 1, tokens
        call = *pointers(s, kappa), *shape, ctx.published, *arrays
        ctx.functions.half_quotient_backward(*call, *_end())
        return grad_sums.mT, grad_kappa, None, None


def half_quotient(functions: ctypes.CDLL, sums: Tensor, kappa: Tensor, published: bool) -> Tensor:
    """Midpoints `[tokens, dim]` from sums of mean vectors."""
    out: Tensor = _HalfQuotient.apply(sums, kappa, functions, published)
    return out

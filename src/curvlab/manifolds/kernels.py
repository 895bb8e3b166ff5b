"""Differentiable kernels under the geometry: few passes over the points, exact derivatives.

Here curvatures are tensors that already carry the broadcast last axis, `[..., 1]`. The backward
passes consist of differentiable operations on the saved inputs, so second derivatives are right.
They accumulate in place where they can: a fresh array costs more than the arithmetic on it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import trigonometry as trig
from curvlab.manifolds.tolerances import tolerance


def working(x: Tensor) -> Tensor:
    """Half-precision points are computed with in float32."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def curvature_like(kappa: Tensor | float, dtype: torch.dtype, x: Tensor) -> Tensor:
    """The curvature as a tensor `[..., 1]` that broadcasts against points."""
    if isinstance(kappa, Tensor):
        return kappa.to(dtype).unsqueeze(-1)
    return x.new_full((1,), kappa, dtype=dtype)


_CACHED_ELEMENTS = 2**17


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product over the last axis, which is kept with length one."""
    return (x * y).sum(-1, keepdim=True)


def squared_norm(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """|x|^2 over the last axis, which is kept, accumulated and returned in `dtype`.

    Where no derivative is recorded it is the square of a norm, which needs no temporary array; on
    a CPU a wider `dtype` does (of the size of its input), so that is done in pieces that fit a
    cache: fresh memory costs more than the arithmetic.
    """
    # With the points side by side in memory a norm would jump from coordinate to coordinate.
    if torch.is_grad_enabled() or x.stride(-1) != 1:
        wide = x.to(dtype or x.dtype)
        return dot(wide, wide)
    pieces: tuple[Tensor, ...] = (x,)
    widens = dtype not in (None, x.dtype) and x.device.type == "cpu"
    if widens and x.numel() > _CACHED_ELEMENTS and not torch.compiler.is_compiling():
        pieces = x.split(max(1, _CACHED_ELEMENTS * x.shape[0] // x.numel()))
    norms = [torch.linalg.vector_norm(p, dim=-1, keepdim=True, dtype=dtype) for p in pieces]
    return (norms[0] if len(norms) == 1 else torch.cat(norms)).square_()


def floored_gap(z: Tensor, dtype: torch.dtype) -> Tensor:
    """1 + z, not smaller than for any point of the given dtype that is inside the ball."""
    return (1 + z).clamp(min=tolerance(dtype).floor)


def _gap_arguments(x: Tensor, kappa: Tensor, wide: bool = True) -> tuple[Tensor, Tensor]:
    """Z = kappa |x|^2 and 1 + z > 0, both through float64 if `wide`.

    Near the rim of the ball 1 + z has fewer digits than z by its own size: at distance 10 from the
    origin it is 2e-4, and one float32 rounding of |x|^2 would be an error of 3e-4 in it. Points
    that have been projected stay where it is at least 8e-3 and the error at most 1e-5.
    """
    dtype = torch.float64 if wide else x.dtype
    z = kappa.to(dtype) * squared_norm(x, dtype)
    return z.to(x.dtype), floored_gap(z, x.dtype).to(x.dtype)


class _Gap(Function):
    """1 + kappa |x|^2 of points `[..., dim]`, `[..., 1]`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, kappa: Tensor, wide: bool) -> Tensor:
        return _gap_arguments(x, kappa, wide)[1]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        x, kappa = ctx.saved_tensors
        g_x, g_kappa = x * (2 * kappa * g), squared_norm(x) * g
        return g_x.sum_to_size(x.shape), g_kappa.sum_to_size(kappa.shape), None


def gap(x: Tensor, kappa: Tensor, wide: bool = True) -> Tensor:
    """1 + kappa |x|^2, kept positive for points that rounding has put on the rim of the ball."""
    return _Gap.apply(x, kappa, wide)


class _Scale(Function):
    """x * ratio(kappa |x|^2): every map that moves a point along its ray from the origin.

    With `near_rim`, ratio and slope also get 1 + kappa |x|^2, with all its digits.
    """

    generate_vmap_rule = True

    @staticmethod
    def _arguments(x: Tensor, kappa: Tensor, near_rim: bool) -> tuple[Tensor, ...]:
        return _gap_arguments(x, kappa) if near_rim else (kappa * squared_norm(x),)

    @staticmethod
    def forward(
        x: Tensor,
        kappa: Tensor,
        ratio: Callable[..., Tensor],
        _slope: Callable[..., Tensor],
        near_rim: bool,
    ) -> Tensor:
        return x * ratio(*_Scale._arguments(x, kappa, near_rim))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        x, kappa, ctx.ratio, ctx.slope, ctx.near_rim = inputs
        ctx.save_for_backward(x, kappa)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        x, kappa = ctx.saved_tensors
        arguments = _Scale._arguments(x, kappa, ctx.near_rim)
        pull = ctx.slope(*arguments) * dot(g, x)
        g_x = (g * ctx.ratio(*arguments)).addcmul_(x, 2 * kappa * pull)
        g_kappa = pull * squared_norm(x)
        return g_x.sum_to_size(x.shape), g_kappa.sum_to_size(kappa.shape), None, None, None


def scale_tan(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|."""
    return _Scale.apply(x, kappa, trig.tan_ratio, trig.tan_slope, False)


def scale_tan_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|, stopped at the rim of the ball."""
    return _Scale.apply(x, kappa, trig.tan_rim_ratio, trig.tan_rim_slope, False)


def scale_artan(x: Tensor, kappa: Tensor, wide: bool = True) -> Tensor:
    """artan_k(|x|) x / |x|."""
    return _Scale.apply(x, kappa, trig.artan_ratio, trig.artan_slope, wide)


def scale_sin(x: Tensor, kappa: Tensor) -> Tensor:
    """sin_k(|x|) x / |x|."""
    return _Scale.apply(x, kappa, trig.sin_ratio, trig.sin_slope, False)


def scale_arsin(x: Tensor, kappa: Tensor) -> Tensor:
    """arsin_k(|x|) x / |x|."""
    return _Scale.apply(x, kappa, trig.arsin_ratio, trig.arsin_slope, False)


def scale_half(x: Tensor, kappa: Tensor) -> Tensor:
    """The point half as far from the origin."""
    return _Scale.apply(x, kappa, trig.half_tan_ratio, trig.half_tan_slope, True)


def scale_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """The point, moved back to the rim of the ball if it lies outside."""
    return _Scale.apply(x, kappa, trig.rim_ratio, trig.rim_slope, False)


def _mobius_scalars(x: Tensor, y: Tensor, kappa: Tensor, wide: bool) -> tuple[Tensor, ...]:
    """X + y, |x + y|^2, 1 + kappa |x|^2, 1 + kappa |y|^2 and the common denominator."""
    s = x + y
    s2 = squared_norm(s)
    (_, a), (_, b) = _gap_arguments(x, kappa, wide), _gap_arguments(y, kappa, wide)
    # The denominator cannot be known better than to a rounding of its first term; below that,
    # only for kappa > 0, the sum is the point at infinity up to rounding.
    denominator = torch.maximum(a * b - kappa * s2, torch.finfo(x.dtype).eps * a * b)
    return s, s2, a, b, denominator


class _MobiusAdd(Function):
    """((1 + kappa |x|^2) s - kappa |s|^2 x) / ((1 + kappa |x|^2)(1 + kappa |y|^2) - kappa |s|^2).

    With s = x + y this equals the usual fraction; it keeps its digits when s is small and, for
    kappa < 0, adds only positive terms in the denominator. The sum's squared norm is |s|^2 over
    the denominator, so that a projection of the sum (`projected`) costs no norm of its own.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor, kappa: Tensor, wide: bool, projected: bool) -> Tensor:
        s, s2, a, _, denominator = _mobius_scalars(x, y, kappa, wide)
        along_s, along_x = a / denominator, -kappa * s2 / denominator
        if projected:
            stop = trig.rim_ratio(-along_x)
            along_s, along_x = along_s * stop, along_x * stop
        return (s * along_s).addcmul_(x, along_x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.wide, ctx.projected = inputs[3:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (g,) = grads
        x, y, kappa = ctx.saved_tensors
        s, s2, a, b, denominator = _mobius_scalars(x, y, kappa, ctx.wide)
        along_s, along_x = a / denominator, -kappa * s2 / denominator
        g_kappa = torch.zeros_like(s2)
        if ctx.projected:
            total = (s * along_s).addcmul_(x, along_x)
            pull = trig.rim_slope(-along_x) * dot(g, total)
            g_kappa = pull * s2 / denominator
            g = (g * trig.rim_ratio(-along_x)).addcmul_(total, 2 * kappa * pull)
        g_along_s, g_along_x = dot(g, s) / denominator, dot(g, x) / denominator
        g_denominator = -(g_along_s * along_s + g_along_x * along_x)
        # g_denominator carries one division by the denominator, as g_along_* do.
        g_s2 = -(g_along_x + g_denominator)
        g_a, g_b = g_along_s + g_denominator * b, g_denominator * a
        g_s = (g * along_s).addcmul_(s, 2 * kappa * g_s2)
        g_x = (g * along_x).addcmul_(x, 2 * kappa * g_a).add_(g_s)
        g_y = g_s.addcmul_(y, 2 * kappa * g_b)
        g_kappa = g_kappa + s2 * g_s2 + squared_norm(x) * g_a + squared_norm(y) * g_b
        return (
            g_x.sum_to_size(x.shape),
            g_y.sum_to_size(y.shape),
            g_kappa.sum_to_size(kappa.shape),
            None,
            None,
        )


def mobius_add(
    x: Tensor, y: Tensor, kappa: Tensor, wide: bool = True, projected: bool = False
) -> Tensor:
    """Moebius sum of points `[..., dim]`; see `stereographic.mobius_add`."""
    return _MobiusAdd.apply(x, y, kappa, wide, projected)


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

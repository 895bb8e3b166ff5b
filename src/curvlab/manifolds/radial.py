"""Maps that move a point along its ray from the origin: x times a ratio of kappa |x|^2.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`; the ratios and their
derivatives are those of `curvlab.manifolds.tangents`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import tangents
from curvlab.manifolds.kernels import combination, compiled_rows, dot, gap_arguments, squared_norm

RadialProfile = Callable[[Tensor, Tensor | None, bool], tangents.Profile]


class _Scale(Function):
    """x * ratio(kappa |x|^2): every map that moves a point along its ray from the origin.

    `profile` gives ratio and derivative (`curvlab.manifolds.tangents`); with `near_rim` it gets
    1 + kappa |x|^2 with all its digits. What the backward pass needs of them is kept, `[..., 1]`,
    unless that is to be differentiated itself.
    """

    generate_vmap_rule = True

    @staticmethod
    def _small(
        x: Tensor, kappa: Tensor, profile: RadialProfile, near_rim: bool, with_slope: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """|x|^2, ratio and its derivative."""
        if near_rim:
            z, gap = gap_arguments(x, kappa)
            return squared_norm(x), *profile(z, gap, with_slope)
        norm = squared_norm(x)
        return norm, *profile(kappa * norm, None, with_slope)

    @staticmethod
    def forward(
        x: Tensor, kappa: Tensor, profile: RadialProfile, near_rim: bool, with_slope: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        norm, ratio, slope = _Scale._small(x, kappa, profile, near_rim, with_slope)
        return combination(compiled_rows(x), (x, ratio)), norm, ratio, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        x, kappa, ctx.profile, ctx.near_rim, with_slope = inputs
        ctx.rows = compiled_rows(x)
        if with_slope:
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(x, kappa, *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, kappa, norm, ratio, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            norm, ratio, slope = _Scale._small(x, kappa, ctx.profile, ctx.near_rim, True)
        pull = slope * dot(g, x)
        g_x = combination(ctx.rows, (g, ratio), (x, 2 * kappa * pull))
        g_kappa = pull * norm
        return g_x.sum_to_size(x.shape), g_kappa.sum_to_size(kappa.shape), None, None, None


def _scale(x: Tensor, kappa: Tensor, profile: RadialProfile, near_rim: bool = False) -> Tensor:
    return _Scale.apply(x, kappa, profile, near_rim, torch.is_grad_enabled())[0]


def scale_tan(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|."""
    return _scale(x, kappa, tangents.tangent)


def scale_tan_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """tan_k(|x|) x / |x|, stopped at the rim of the ball."""
    return _scale(x, kappa, tangents.tangent_rim)


def scale_clip(x: Tensor, kappa: Tensor) -> Tensor:
    """The logarithm of `scale_tan_rim`: the same vector but where it leads beyond the rim."""
    return _scale(x, kappa, tangents.clip)


def scale_artan(x: Tensor, kappa: Tensor, projected: bool = False) -> Tensor:
    """artan_k(|x|) x / |x|, at less cost for points that are known to be projected."""
    if projected:
        return _scale(x, kappa, tangents.artan_projected)
    return _scale(x, kappa, tangents.artan, near_rim=True)


def scale_half(x: Tensor, kappa: Tensor) -> Tensor:
    """The point half as far from the origin."""
    return _scale(x, kappa, tangents.half_tan, near_rim=True)


def scale_rim(x: Tensor, kappa: Tensor) -> Tensor:
    """The point, moved back to the rim of the ball if it lies outside."""
    return _scale(x, kappa, tangents.rim)


class _Lift(Function):
    """A tangent vector at the origin as a point, stopped at the rim, and that point's logarithm.

    Both are the vector times a factor, from one norm.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(v: Tensor, kappa: Tensor, with_slope: bool) -> tuple[Tensor | None, ...]:
        norm = squared_norm(v)
        (point, point_slope), (clip, clip_slope) = tangents.lift(kappa * norm, with_slope)
        rows = compiled_rows(v)
        points, clipped = combination(rows, (v, point)), combination(rows, (v, clip))
        return points, clipped, norm, point, point_slope, clip, clip_slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        v, kappa, with_slope = inputs
        ctx.rows = compiled_rows(v)
        if with_slope:
            ctx.mark_non_differentiable(*output[2:])
            ctx.save_for_backward(v, kappa, *output[2:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g_point, g_clip = grads[:2]
        v, kappa, norm, point, point_slope, clip, clip_slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            norm = squared_norm(v)
            (point, point_slope), (clip, clip_slope) = tangents.lift(kappa * norm, True)
        pull = dot(combination(ctx.rows, (g_point, point_slope), (g_clip, clip_slope)), v)
        g_v = combination(ctx.rows, (g_point, point), (g_clip, clip), (v, 2 * kappa * pull))
        g_kappa = pull * norm
        return g_v.sum_to_size(v.shape), g_kappa.sum_to_size(kappa.shape), None


def lift(v: Tensor, kappa: Tensor) -> tuple[Tensor, Tensor]:
    """`scale_tan_rim(v)` and `scale_clip(v)`."""
    return _Lift.apply(v, kappa, torch.is_grad_enabled())[:2]

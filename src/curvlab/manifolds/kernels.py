"""Differentiable kernels under the geometry: few passes over the points, exact derivatives.

Here curvatures are tensors that already carry the broadcast last axis, `[..., 1]`. The backward
passes consist of differentiable operations on the saved inputs, so second derivatives are right.
They accumulate in place where they can: a fresh array costs more than the arithmetic on it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import tangents
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

RadialProfile = Callable[[Tensor, Tensor | None, bool], tangents.Profile]


def dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner product over the last axis, which is kept with length one."""
    return (x * y).sum(-1, keepdim=True)


def join_last(*parts: Tensor) -> Tensor:
    """Concatenation over the last axis in the first part's layout in memory."""
    if parts[0].stride(-1) == 1:
        return torch.cat(parts, dim=-1)
    return torch.cat([part.mT for part in parts], dim=-2).mT


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
            z, gap = _gap_arguments(x, kappa)
            return squared_norm(x), *profile(z, gap, with_slope)
        norm = squared_norm(x)
        return norm, *profile(kappa * norm, None, with_slope)

    @staticmethod
    def forward(
        x: Tensor, kappa: Tensor, profile: RadialProfile, near_rim: bool, with_slope: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        norm, ratio, slope = _Scale._small(x, kappa, profile, near_rim, with_slope)
        return x * ratio, norm, ratio, slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        x, kappa, ctx.profile, ctx.near_rim, with_slope = inputs
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
        g_x = (g * ratio).addcmul_(x, 2 * kappa * pull)
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


def scale_sin(x: Tensor, kappa: Tensor) -> Tensor:
    """sin_k(|x|) x / |x|."""
    return _scale(x, kappa, trig.sin)


def scale_arsin(x: Tensor, kappa: Tensor) -> Tensor:
    """arsin_k(|x|) x / |x|."""
    return _scale(x, kappa, trig.arsin)


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
        return v * point, v * clip, norm, point, point_slope, clip, clip_slope

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        v, kappa, with_slope = inputs
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
        pull = dot((g_point * point_slope).addcmul_(g_clip, clip_slope), v)
        g_v = (g_point * point).addcmul_(g_clip, clip).addcmul_(v, 2 * kappa * pull)
        g_kappa = pull * norm
        return g_v.sum_to_size(v.shape), g_kappa.sum_to_size(kappa.shape), None


def lift(v: Tensor, kappa: Tensor) -> tuple[Tensor, Tensor]:
    """`scale_tan_rim(v)` and `scale_clip(v)`."""
    return _Lift.apply(v, kappa, torch.is_grad_enabled())[:2]


class _MobiusScalars(NamedTuple):
    """What the Moebius sum is made of besides its vectors, all `[..., 1]`.

    Attributes:
        x2: |x|^2.
        y2: |y|^2.
        s2: |x + y|^2.
        a: 1 + kappa |x|^2.
        b: 1 + kappa |y|^2.
        denominator: a b - kappa |x + y|^2.
    """

    x2: Tensor
    y2: Tensor
    s2: Tensor
    a: Tensor
    b: Tensor
    denominator: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor, s: Tensor, kappa: Tensor, wide: bool) -> "_MobiusScalars":
        """Compute them; `wide` takes a and b through float64."""
        x2, y2, s2 = squared_norm(x), squared_norm(y), squared_norm(s)
        if wide:
            a, b = _gap_arguments(x, kappa)[1], _gap_arguments(y, kappa)[1]
        else:
            a, b = floored_gap(kappa * x2, x.dtype), floored_gap(kappa * y2, x.dtype)
        # The denominator cannot be known better than to a rounding of its first term; below that,
        # only for kappa > 0, the sum is the point at infinity up to rounding.
        ab = a * b
        denominator = torch.maximum(ab - kappa * s2, torch.finfo(x.dtype).eps * ab)
        return cls(x2, y2, s2, a, b, denominator)


class _MobiusAdd(Function):
    """((1 + kappa |x|^2) s - kappa |s|^2 x) / ((1 + kappa |x|^2)(1 + kappa |y|^2) - kappa |s|^2).

    With s = x + y this equals the usual fraction; it keeps its digits when s is small and, for
    kappa < 0, adds only positive terms in the denominator. The sum's squared norm is |s|^2 over
    the denominator, so that a projection of the sum (`projected`) costs no norm of its own.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, y: Tensor, kappa: Tensor, wide: bool, projected: bool
    ) -> tuple[Tensor, ...]:
        s = x + y
        scalars = _MobiusScalars.of(x, y, s, kappa, wide)
        along_s = scalars.a / scalars.denominator
        along_x = -kappa * scalars.s2 / scalars.denominator
        if projected:
            stop, _ = tangents.rim(-along_x)
            along_s, along_x = along_s * stop, along_x * stop
        return (s * along_s).addcmul_(x, along_x), *scalars

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.wide, ctx.projected = inputs[3:]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[:3], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, y, kappa, *saved = ctx.saved_tensors
        s = x + y
        scalars = _MobiusScalars(*saved)
        if torch.is_grad_enabled():
            scalars = _MobiusScalars.of(x, y, s, kappa, ctx.wide)
        x2, y2, s2, a, b, denominator = scalars
        along_s, along_x = a / denominator, -kappa * s2 / denominator
        g_along_s, g_along_x = dot(g, s), dot(g, x)
        to_s, to_x = along_s, along_x
        if ctx.projected:
            # The rim's factor depends on kappa times the sum's squared norm, which is -along_x.
            stop, stop_slope = tangents.rim(-along_x, with_slope=True)
            pull = stop_slope * (g_along_s * along_s + g_along_x * along_x)
            g_along_s, g_along_x = stop * g_along_s, stop * g_along_x - pull
            to_s, to_x = stop * along_s, stop * along_x
        g_along_s, g_along_x = g_along_s / denominator, g_along_x / denominator
        g_denominator = -(g_along_s * along_s + g_along_x * along_x)
        # g_denominator carries one division by the denominator, as g_along_* do.
        g_s2 = -(g_along_x + g_denominator)
        g_a, g_b = g_along_s + g_denominator * b, g_denominator * a
        g_s = (g * to_s).addcmul_(s, 2 * kappa * g_s2)
        g_x = torch.addcmul(g_s, g, to_x).addcmul_(x, 2 * kappa * g_a)
        g_y = g_s.addcmul_(y, 2 * kappa * g_b)
        g_kappa = s2 * g_s2 + x2 * g_a + y2 * g_b
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
    return _MobiusAdd.apply(x, y, kappa, wide, projected)[0]


class _ExpSum(Function):
    """exp_0(u) (+) exp_0(v), all stopped at the rim, of vectors `[..., tokens, dim]` and one v.

    The sum is a combination P u + Q v with factors from |u|^2, |v|^2 and <u, v> alone, so that no
    point between is made; `v [..., 1, dim]` goes through the exponential as one more token.
    """

    generate_vmap_rule = True

    @staticmethod
    def _small(u: Tensor, v: Tensor, kappa: Tensor, with_slope: bool) -> tuple[Any, ...]:
        """Squared norms of u and v, <u, v>, the exponential's factors and their derivatives."""
        norms = torch.cat([squared_norm(u), squared_norm(v)], dim=-2)
        return norms, (v @ u.mT).mT, *tangents.tangent_rim(kappa * norms, None, with_slope)

    @staticmethod
    def _sum(norms: Tensor, product: Tensor, ratios: Tensor, kappa: Tensor) -> tuple[Any, ...]:
        """Scalars of `_MobiusAdd` for x = exp_0(u), y = exp_0(v), and its factors of s and x."""
        squares = ratios * ratios * norms
        x2, y2 = squares[..., :-1, :], squares[..., -1:, :]
        gaps = floored_gap(kappa * squares, norms.dtype)
        a, b = gaps[..., :-1, :], gaps[..., -1:, :]
        both = ratios[..., :-1, :] * ratios[..., -1:, :]
        s2 = torch.addcmul(x2 + y2, both, product, value=2)
        ab = a * b
        denominator = torch.maximum(ab - kappa * s2, torch.finfo(norms.dtype).eps * ab)
        scalars = _MobiusScalars(x2, y2, s2, a, b, denominator)
        return scalars, a / denominator, -kappa * s2 / denominator

    @staticmethod
    def forward(u: Tensor, v: Tensor, kappa: Tensor, with_slope: bool) -> tuple[Tensor | None, ...]:
        norms, product, ratios, slopes = _ExpSum._small(u, v, kappa, with_slope)
        _, along_s, along_x = _ExpSum._sum(norms, product, ratios, kappa)
        stop, _ = tangents.rim(-along_x)
        result = u * (stop * ratios[..., :-1, :] * (along_s + along_x))
        result.addcmul_(v, stop * ratios[..., -1:, :] * along_s)
        return result, norms, product, ratios, slopes

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        if inputs[3]:
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(*inputs[:3], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        u, v, kappa, norms, product, ratios, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():
            norms, product, ratios, slopes = _ExpSum._small(u, v, kappa, True)
        (x2, y2, s2, a, b, denominator), along_s, along_x = _ExpSum._sum(
            norms, product, ratios, kappa
        )
        ratio, of_v = ratios[..., :-1, :], ratios[..., -1:, :]
        c = of_v * v
        stop, stop_slope = tangents.rim(-along_x, with_slope=True)
        g_dot_u = dot(g, u)
        g_along_x = ratio * g_dot_u
        g_along_s = g_along_x + (c @ g.mT).mT
        pull = stop_slope * (g_along_s * along_s + g_along_x * along_x)
        g_along_s = stop * g_along_s / denominator
        g_along_x = (stop * g_along_x - pull) / denominator
        g_denominator = -(g_along_s * along_s + g_along_x * along_x)
        g_s2 = -(g_along_x + g_denominator)
        g_a, g_b = g_along_s + g_denominator * b, g_denominator * a
        # By x = ratio u the derivative is to_x g + by_x u + by_c c.
        to_x = stop * (along_s + along_x)
        by_x, by_c = 2 * kappa * ratio * (g_a + g_s2), 2 * kappa * g_s2
        pull = slopes[..., :-1, :] * (to_x * g_dot_u + by_x * norms[..., :-1, :])
        pull = torch.addcmul(pull, slopes[..., :-1, :] * by_c, of_v * product)
        g_u = (g * (ratio * to_x)).addcmul_(u, ratio * by_x + 2 * kappa * pull)
        g_u.addcmul_(c, ratio * by_c)
        g_c = (stop * along_s).mT @ g + (ratio * by_c).mT @ u
        g_c = g_c + c * (2 * kappa * (g_b + g_s2)).sum(-2, keepdim=True)
        pull_v = slopes[..., -1:, :] * dot(g_c, v)
        g_v = of_v * g_c + 2 * kappa * pull_v * v
        g_kappa = s2 * g_s2 + x2 * g_a + y2 * g_b + norms[..., :-1, :] * pull
        g_kappa = g_kappa.sum_to_size(kappa.shape)
        g_kappa = g_kappa + (norms[..., -1:, :] * pull_v).sum_to_size(kappa.shape)
        return g_u, g_v.sum_to_size(v.shape), g_kappa, None


def exp_sum(u: Tensor, v: Tensor, kappa: Tensor) -> Tensor:
    """`mobius_add(scale_tan_rim(u), scale_tan_rim(v))`, projected, of tokens and one vector."""
    return _ExpSum.apply(u, v, kappa, torch.is_grad_enabled())[0]


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


class _HalfQuotient(Function):
    """N / (D + sign(D) sqrt(D^2 + kappa |N|^2)) of sums [N, D] `[..., dim + 1]`.

    Half the way (in the sense of `scale_half`) to the quotient N / D, with its limit where D
    crosses 0 (kappa > 0: a direction on the equator).
    """

    generate_vmap_rule = True

    @staticmethod
    def _small(sums: Tensor, kappa: Tensor) -> tuple[Tensor, ...]:
        """|N|^2, the sign of D, |D|, the root, and whether rounding has put N / D on the rim."""
        floor = tolerance(sums.dtype).floor
        d = sums[..., -1:]
        norm = squared_norm(sums[..., :-1])
        size = d.abs().clamp(min=torch.finfo(sums.dtype).tiny)
        square = size.square()
        # For kappa < 0 the quotient lies inside the ball; rounding may put it on the rim.
        free = square + kappa * norm
        inside = torch.maximum(free, floor * square)
        root = inside.clamp(min=torch.finfo(sums.dtype).tiny).sqrt()
        return norm, torch.copysign(torch.ones_like(d), d), size, root, torch.sign(inside - free)

    @staticmethod
    def forward(sums: Tensor, kappa: Tensor) -> tuple[Tensor, ...]:
        small = _HalfQuotient._small(sums, kappa)
        _, sign, size, root, _ = small
        return sums[..., :-1] * (sign / (size + root)), *small

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        sums, kappa, *small = ctx.saved_tensors
        if torch.is_grad_enabled():
            small = _HalfQuotient._small(sums, kappa)
        norm, sign, size, root, on_rim = small
        n = sums[..., :-1]
        factor = sign / (size + root)
        g_sum = -dot(g, n) * factor / (size + root)
        g_inside = g_sum * (1 - on_rim) / root
        g_n = (g * factor).addcmul_(n, kappa * g_inside)
        g_d = sign * (g_sum + size * g_inside)
        g_kappa = 0.5 * norm * g_inside
        return join_last(g_n, g_d), g_kappa.sum_to_size(kappa.shape)


def half_quotient(sums: Tensor, kappa: Tensor) -> Tensor:
    """1/2 (x) (N / D) of sums [N, D] `[..., dim + 1]`; see `stereographic.midpoint_from_sums`."""
    return _HalfQuotient.apply(sums, kappa)[0]

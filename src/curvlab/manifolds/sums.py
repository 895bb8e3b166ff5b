"""Sums of points, and the quotient that a weighted midpoint ends with.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import tangents
from curvlab.manifolds.kernels import (
    combination,
    compiled_rows,
    dot,
    floored_gap,
    join_last,
    squared_norm,
)
from curvlab.manifolds.tolerances import tolerance


class _MobiusScalars(NamedTuple):
    """What the Moebius sum is made of besides its vectors, all `[..., 1]`.

    With s = x + y the sum is ((1 + kappa |x|^2) s - kappa |s|^2 x) / denominator, where the
    denominator is (1 + kappa |x|^2)(1 + kappa |y|^2) - kappa |s|^2. This equals the usual fraction;
    it keeps its digits when s is small and, for kappa < 0, adds only positive terms in the
    denominator. The sum's squared norm is |s|^2 over the denominator, so that a projection of the
    sum costs no norm of its own.

    Attributes:
        x2: |x|^2.
        y2: |y|^2.
        s2: |s|^2.
        a: 1 + kappa |x|^2.
        b: 1 + kappa |y|^2.
        denominator: see above.
    """

    x2: Tensor
    y2: Tensor
    s2: Tensor
    a: Tensor
    b: Tensor
    denominator: Tensor

    @classmethod
    def of(
        cls, x2: Tensor, y2: Tensor, s2: Tensor, a: Tensor, b: Tensor, kappa: Tensor
    ) -> "_MobiusScalars":
        """Add the denominator to the others."""
        # It cannot be known better than to a rounding of its first term; below that, only for
        # kappa > 0, the sum is the point at infinity up to rounding.
        ab = a * b
        denominator = torch.maximum(ab - kappa * s2, torch.finfo(ab.dtype).eps * ab)
        return cls(x2, y2, s2, a, b, denominator)

    def factors(self, kappa: Tensor, projected: bool) -> tuple[Tensor, Tensor]:
        """The factors of s and x in the sum."""
        along_s, along_x = self.a / self.denominator, -kappa * self.s2 / self.denominator
        if projected:
            stop, _ = tangents.rim(-along_x)
            return along_s * stop, along_x * stop
        return along_s, along_x

    def derivatives(
        self, kappa: Tensor, g_s: Tensor, g_x: Tensor, projected: bool
    ) -> "_MobiusDerivatives":
        """The factors again, and derivatives by s2, a and b.

        Args:
            kappa: the curvature.
            g_s: product of the incoming derivative with s.
            g_x: its product with x.
            projected: whether the sum is.
        """
        along_s, along_x = self.factors(kappa, projected=False)
        to_s, to_x = along_s, along_x
        if projected:
            # The rim's factor depends on kappa times the sum's squared norm, which is -along_x.
            stop, stop_slope = tangents.rim(-along_x, with_slope=True)
            assert stop_slope is not None
            pull = stop_slope * (g_s * along_s + g_x * along_x)
            g_s, g_x = stop * g_s, stop * g_x - pull
            to_s, to_x = stop * along_s, stop * along_x
        g_s, g_x = g_s / self.denominator, g_x / self.denominator
        # This carries one division by the denominator, as those two do.
        g_denominator = -(g_s * along_s + g_x * along_x)
        g_s2 = -(g_x + g_denominator)
        g_a, g_b = g_s + g_denominator * self.b, g_denominator * self.a
        by_kappa = self.s2 * g_s2 + self.x2 * g_a + self.y2 * g_b
        return _MobiusDerivatives(to_s, to_x, g_s2, g_a, g_b, by_kappa)


class _MobiusDerivatives(NamedTuple):
    """What `_MobiusScalars.derivatives` returns; `g_s2`, `g_a`, `g_b` are over kappa."""

    to_s: Tensor
    to_x: Tensor
    g_s2: Tensor
    g_a: Tensor
    g_b: Tensor
    by_kappa: Tensor


class _MobiusAdd(Function):
    """The Moebius sum of points, projected or not; see `_MobiusScalars`."""

    generate_vmap_rule = True

    @staticmethod
    def _scalars(x: Tensor, y: Tensor, s: Tensor, kappa: Tensor) -> _MobiusScalars:
        x2, y2, s2 = squared_norm(x), squared_norm(y), squared_norm(s)
        a, b = floored_gap(kappa * x2, x.dtype), floored_gap(kappa * y2, x.dtype)
        return _MobiusScalars.of(x2, y2, s2, a, b, kappa)

    @staticmethod
    def forward(x: Tensor, y: Tensor, kappa: Tensor, projected: bool) -> tuple[Tensor, ...]:
        s = x + y
        scalars = _MobiusAdd._scalars(x, y, s, kappa)
        to_s, to_x = scalars.factors(kappa, projected)
        return combination(compiled_rows(x), (s, to_s), (x, to_x)), *scalars

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.projected = inputs[3]
        ctx.rows = compiled_rows(inputs[0])
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[:3], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        x, y, kappa, *saved = ctx.saved_tensors
        s = x + y
        scalars = _MobiusScalars(*saved)
        if torch.is_grad_enabled():
            scalars = _MobiusAdd._scalars(x, y, s, kappa)
        by = scalars.derivatives(kappa, dot(g, s), dot(g, x), ctx.projected)
        kappa2 = 2 * kappa
        of_s = (g, by.to_s), (s, kappa2 * by.g_s2)
        g_x = combination(ctx.rows, *of_s, (g, by.to_x), (x, kappa2 * by.g_a))
        g_y = combination(ctx.rows, *of_s, (y, kappa2 * by.g_b))
        return (
            g_x.sum_to_size(x.shape),
            g_y.sum_to_size(y.shape),
            by.by_kappa.sum_to_size(kappa.shape),
            None,
        )


def mobius_add(x: Tensor, y: Tensor, kappa: Tensor, projected: bool = False) -> Tensor:
    """Moebius sum of points `[..., dim]`; see `stereographic.mobius_add`."""
    return _MobiusAdd.apply(x, y, kappa, projected)[0]


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
    def _scalars(norms: Tensor, product: Tensor, ratios: Tensor, kappa: Tensor) -> _MobiusScalars:
        """Those of x = exp_0(u) and y = exp_0(v)."""
        squares = ratios * ratios * norms
        x2, y2 = _tokens(squares)
        a, b = _tokens(floored_gap(kappa * squares, norms.dtype))
        of_u, of_v = _tokens(ratios)
        s2 = torch.addcmul(x2 + y2, of_u * of_v, product, value=2)
        return _MobiusScalars.of(x2, y2, s2, a, b, kappa)

    @staticmethod
    def forward(u: Tensor, v: Tensor, kappa: Tensor, with_slope: bool) -> tuple[Tensor | None, ...]:
        norms, product, ratios, slopes = _ExpSum._small(u, v, kappa, with_slope)
        to_s, to_x = _ExpSum._scalars(norms, product, ratios, kappa).factors(kappa, True)
        of_u, of_v = _tokens(ratios)
        result = combination(compiled_rows(u), (u, of_u * (to_s + to_x)), (v, of_v * to_s))
        return result, norms, product, ratios, slopes

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.rows = compiled_rows(inputs[0])
        if inputs[3]:
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(*inputs[:3], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        u, v, kappa, norms, product, ratios, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():
            norms, product, ratios, slopes = _ExpSum._small(u, v, kappa, True)
        scalars = _ExpSum._scalars(norms, product, ratios, kappa)
        (u2, v2), (of_u, of_v), (slope, slope_v) = map(_tokens, (norms, ratios, slopes))
        y, kappa2 = of_v * v, 2 * kappa
        g_dot_u = dot(g, u)
        g_dot_x = of_u * g_dot_u
        by = scalars.derivatives(kappa, g_dot_x + (y @ g.mT).mT, g_dot_x, projected=True)
        # The derivative by x = of_u u is to_g g + to_u u + to_y y; by_u its product with u.
        to_g, to_y = by.to_s + by.to_x, kappa2 * by.g_s2
        to_u = kappa2 * of_u * (by.g_a + by.g_s2)
        by_u = torch.addcmul(to_g * g_dot_u + to_u * u2, to_y * of_v, product)
        pull = slope * by_u
        along_y = of_u * to_y
        g_u = combination(
            ctx.rows, (g, of_u * to_g), (u, of_u * to_u + kappa2 * pull), (y, along_y)
        )
        g_y = by.to_s.mT @ g + along_y.mT @ u
        g_y = g_y + y * (kappa2 * (by.g_b + by.g_s2)).sum(-2, keepdim=True)
        pull_v = slope_v * dot(g_y, v)
        g_v = of_v * g_y + kappa2 * pull_v * v
        g_kappa = (by.by_kappa + u2 * pull).sum_to_size(kappa.shape)
        g_kappa = g_kappa + (v2 * pull_v).sum_to_size(kappa.shape)
        return g_u, g_v.sum_to_size(v.shape), g_kappa, None


def _tokens(joined: Tensor) -> tuple[Tensor, Tensor]:
    """What belongs to the tokens and to the one vector after them."""
    return joined[..., :-1, :], joined[..., -1:, :]


def exp_sum(u: Tensor, v: Tensor, kappa: Tensor) -> Tensor:
    """`mobius_add(scale_tan_rim(u), scale_tan_rim(v))`, projected, of tokens and one vector."""
    return _ExpSum.apply(u, v, kappa, torch.is_grad_enabled())[0]


class _HalfQuotient(Function):
    r"""N / (D + R) with R = sqrt(D^2 + kappa |N|^2), of sums [N, D] `[..., dim + 1]`.

    On the sphere this is the point in the direction of a sum of vectors, N across the axis and
    D / sqrt(kappa) along it: analytic in both but for the antipode of the origin, N = 0 > D. There,
    where the denominator cancels, it is N (R - D) / (kappa |N|^2), and |N| is taken to be no less
    than a rounding of D, which bounds the result.

    For kappa <= 0, where D < 0 only by weights of both signs, and in the printed form for all
    kappa, the denominator is D + sign(D) R: half the way (in the sense of `scale_half`) to N / D.
    """

    generate_vmap_rule = True

    @staticmethod
    def _small(sums: Tensor, kappa: Tensor, printed: bool) -> tuple[Tensor, ...]:
        """|N|^2, the factor f of N, -d(log f)/dD, and where f depends on N: no bound holds."""
        limits = torch.finfo(sums.dtype)
        d = sums[..., -1:]
        norm = squared_norm(sums[..., :-1])
        negative = d < 0
        sign = 1 - 2 * negative.to(d.dtype)
        size = d.abs().clamp(min=limits.tiny)
        square, curved = size.square(), kappa * norm
        # For kappa < 0 the quotient lies inside the ball; rounding may put it on the rim.
        rim = tolerance(sums.dtype).floor * square
        inside = square + curved
        root = torch.maximum(inside, rim).clamp(min=limits.tiny).sqrt()
        whole = size + root
        factor, free = sign / whole, inside > rim
        slope = sign / torch.where(free, root, torch.maximum(size, root))
        if not printed:
            far = negative & (kappa > 0)
            least = (limits.eps**2 * square).clamp(min=limits.tiny)
            cancelled = torch.where(far, torch.maximum(curved, least), 1.0)
            factor = torch.where(far, whole / cancelled, factor)
            free = torch.where(far, curved > least, free)
            slope = torch.where(far & free, -slope, slope)
        return norm, factor, slope, free

    @staticmethod
    def forward(sums: Tensor, kappa: Tensor, printed: bool) -> tuple[Tensor, ...]:
        small = _HalfQuotient._small(sums, kappa, printed)
        return combination(compiled_rows(sums), (sums[..., :-1], small[1])), *small

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.printed = inputs[2]
        ctx.rows = compiled_rows(inputs[0])
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[:2], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        g = grads[0]
        sums, kappa, *small = ctx.saved_tensors
        if torch.is_grad_enabled():
            small = _HalfQuotient._small(sums, kappa, ctx.printed)
        norm, factor, slope, free = small
        n = sums[..., :-1]
        pull = dot(g, n) * factor * slope
        bend = torch.where(free, factor, 0.0)  # each product in the order that does not overflow
        g_n = combination(ctx.rows, (g, factor), (n, pull * (-kappa * bend)))
        g_kappa = -0.5 * pull * (norm * bend)
        return join_last(g_n, -pull), g_kappa.sum_to_size(kappa.shape), None


def half_quotient(sums: Tensor, kappa: Tensor, printed: bool = False) -> Tensor:
    """A midpoint of its sums [N, D] `[..., dim + 1]`; see `stereographic.midpoint_from_sums`."""
    return _HalfQuotient.apply(sums, kappa, printed)[0]

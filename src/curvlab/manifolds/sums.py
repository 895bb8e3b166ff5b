"""Sums of points, and the quotient that a weighted midpoint ends with.

Curvatures are tensors `[..., 1]`, as in `curvlab.manifolds.kernels`.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds import curved_trig
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.kernels import (
    combination,
    compiled_rows,
    dot,
    floored_gap,
    join_last,
    squared_norm,
)


class MobiusScalars(NamedTuple):
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
    ) -> "MobiusScalars":
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
            stop, _ = curved_trig.rim(-along_x)
            return along_s * stop, along_x * stop
        return along_s, along_x


def mobius_add(x: Tensor, y: Tensor, kappa: Tensor, projected: bool = False) -> Tensor:
    """Moebius sum of points `[..., dim]`, projected or not; see `stereographic.mobius_add`."""
    s = x + y
    x2, y2, s2 = (squared_norm(part) for part in (x, y, s))
    a, b = (floored_gap(kappa * square, x.dtype) for square in (x2, y2))
    to_s, to_x = MobiusScalars.of(x2, y2, s2, a, b, kappa).factors(kappa, projected)
    return torch.addcmul(s * to_s, x, to_x)


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

"""All arithmetic on one tile of pairs as a single function, for a compiler to fuse.

What `curvlab.manifolds.pairs.profiles` does in passes over arrays, each of them one operation, is
here one expression a pair, in which curvatures are tensors, so that nothing is compiled again when
they move.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds.compilable import Compilable
from curvlab.manifolds.curved_trig import ARSIN_SQUARED
from curvlab.manifolds.fused import polynomial

# Just short of the antipode (kappa u^2 = 1), where the distance has a kink.
_ANTIPODE = 1 - 1e-6
# |kappa u^2| below which series replace the closed forms, of which one ends in a difference of two
# numbers that are equal at 0.
_NEAR = 0.1
# Terms of the series, by what is left of them there: less than a rounding.
_TERMS = {torch.float32: 8, torch.float64: 15}
_DERIVATIVE = [n * c for n, c in enumerate(ARSIN_SQUARED)][1:]
# Rounding of a matrix product, below which a distance (not squared) would have a wild slope.
SMALLEST_SQDIST = {torch.float32: 1e-6, torch.float64: 1e-15}


class PairKernel(Compilable):
    r"""`exp(-D)` of a tile of pairs and its derivatives, from the forms of all components.

    With the form `u^2` of a pair and component, `z = kappa u^2` and
    `A(z) = (asin(sqrt z) / sqrt z)^2`, which is analytic through 0: `D = 4 sum_h u_h^2 A(z_h)`,
    `dD/d(u_h^2) = 4 (A + z A')`, `dD/d(kappa_h) = 4 u_h^4 A'`. Where it is flat `D = u^2`.

    Attributes:
        by_form: `dD/d(u_h^2)` in units of the weights, where it is curved.
        by_kappa: `dD/d(kappa_h)` in units of the entries.
    """

    dynamic = False  # a graph has tiles of at most three shapes
    by_form = by_kappa = 4.0

    def forward(
        self,
        forms: Sequence[Tensor],
        kappa: Tensor | None,
        spherical: bool,
        power: int,
        total: Tensor,
        weights: Sequence[Tensor],
        clamp: float | None = None,
    ) -> None:
        """Fill the arrays of a tile, all `[rows, columns]`.

        Args:
            forms: of each component; minus infinity in the first where a pair does not count. They
                become the entries, `e dD/d(kappa_h)` in units of `by_kappa`, where it is curved.
            kappa: curvatures `[components]`, or None where it is flat.
            spherical: whether any curvature may be positive.
            power: 2 for `exp(-D)`, 1 for `exp(-sqrt D)`.
            total: becomes this exponential, whose derivative by `D` is `-e`.
            weights: become, of each component, `e dD/d(u_h^2)` in units of `by_form`.
            clamp: smallest exponential, below which it is constant; None for none.
        """
        # Components one by one: all numbers of a pair then come from one sweep over the tile.
        masked = forms[0] == -torch.inf
        squares = [form.clamp_min(0) for form in forms]
        found = []
        if kappa is None:
            (sqdist,) = squares
        else:
            pairs = zip(squares, kappa.unbind(), strict=True)
            found = [_asin_quotient(u2, k, spherical) for u2, k in pairs]
            terms = [u2 * f.value for u2, f in zip(squares, found, strict=True)]
            sqdist = 4 * sum(terms[1:], start=terms[0])
        if power == 2:
            exponential = slope = torch.where(masked, 0, torch.exp(-sqdist))
        else:
            distance = sqdist.clamp_min(SMALLEST_SQDIST[sqdist.dtype]).sqrt()
            exponential = torch.where(masked, 0, torch.exp(-distance))
            slope = exponential / (2 * distance)
        if clamp is not None:
            below = ~masked & (exponential < clamp)
            exponential = torch.where(below, clamp, exponential)
            slope = torch.where(below, 0, slope)
        total.copy_(exponential)
        if not found:
            weights[0].copy_(slope)
        for form, weight, u2, f in zip(forms, weights, squares, found, strict=False):
            weight.copy_(f.by_form * slope)
            form.copy_(u2 * u2 * f.derivative * slope)


class _Quotient(NamedTuple):
    """`A(z)`, `d(u^2 A)/d(u^2) = A + z A'`, and `A'`."""

    value: Tensor
    by_form: Tensor
    derivative: Tensor


def _asin_quotient(form: Tensor, kappa: Tensor, spherical: bool) -> _Quotient:
    """`A` at `z = kappa u^2`."""
    z, terms = (kappa * form).clamp_max(_ANTIPODE), _TERMS[form.dtype]
    magnitude = z.abs()
    near = magnitude < _NEAR
    root = (magnitude + magnitude * magnitude).sqrt()
    angle = torch.log(1 + 2 * magnitude + 2 * root) / 2
    if spherical:
        positive = z > 0
        angle = torch.where(positive, magnitude.sqrt().asin(), angle)
        root = torch.where(positive, (magnitude - magnitude * magnitude).sqrt(), root)
    quotient = torch.where(near, polynomial(z, ARSIN_SQUARED[:terms]), angle * angle / magnitude)
    slope = angle / root
    derivative = torch.where(near, polynomial(z, _DERIVATIVE[:terms]), (slope - quotient) / z)
    return _Quotient(quotient, torch.where(near, quotient + z * derivative, slope), derivative)

"""Squared distances of many pairs of points as functions of one bilinear form, with derivatives.

On every space of the reconstruction task the squared distance `D` of two points is a function of a
form that is bilinear in features of the two: `|x - y|^2` where it is flat,
`u^2 = |x - y|^2 / ((1 + kappa |x|^2) (1 + kappa |y|^2))` on the stereographic model, and
`kappa <x - y, x - y> / 4` on the pseudo-hyperboloid. A profile evaluates that function on a tile of
pairs, in arrays that its caller keeps.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds.curved_trig import ARSIN_SQUARED

# Floors that keep quotients of two zeros finite and are far below what float32 resolves; roots of
# zeros take 40 times as long as others on a processor.
_SMALLEST_KAPPA = 1e-10
_SMALLEST_FORM = 1e-30
# Just short of the antipode (4 sin^2 = 4), where the distance has a kink.
_ANTIPODE = 4 - 4e-6
# Of m (1 - m), a few roundings: the slope is finite at m = 0 and has a pole at m = 1.
_SMALLEST_PSEUDO = 1e-6
# |kappa| below which d(distance)/d(kappa) is summed from its series: the closed form divides a
# difference of order kappa^2 by kappa^2.
_FLAT = 2e-2
_TERMS = 8
# Of w: 8 terms are exact in float32 below, and the closed form has lost no digits above.
SERIES_REACH = 0.4
Number = Tensor | float


class Profile:
    """`D` as a function of a form, and here the form itself.

    Attributes:
        form_scale: factor of the features before their product.
        by_form: `dD / d(form)` in units of the slopes that `evaluate` leaves.
        by_kappa: `dD / d(kappa)` in units of the entries that it leaves.
    """

    form_scale: Number = 1.0
    by_form: Number = 1.0
    by_kappa: Number = 0.0

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:  # noqa: ARG002
        """Subtract `D` of a tile of scaled forms, which is overwritten, from `total`.

        Where it is curved, fill the slopes and entries.
        """
        total.sub_(form.clamp_min_(0))


class CurvedProfile(Profile):
    """`D = (2 arsin_kappa(u))^2` as a function of the form `u^2` and of kappa.

    With `w = 4 |kappa| u^2`, the double angle `t = 2 asinh(sqrt(w / 4))` (hyperbolic) or
    `2 asin(sqrt(w / 4))` (spherical) and `r = sqrt(w (1 +- w / 4))`: `D = t^2 / |kappa|`,
    `dD/d(u^2) = 4 t / r`, and at fixed `u^2` `dD/d(kappa) = (w t / r - t^2) / (kappa |kappa|)`.

    On the processor the sign of kappa chooses the branch; on an accelerator, where looking at it
    would wait for the device, both are computed.

    Args:
        kappa: curvature, a scalar.
        far: whether pairs with `D > 64` count. Weights `exp(-D)` cut them off; weights
            `exp(-sqrt D)`, and the weights 1 of edges, do not.

    The series in kappa is that of `asin^2` (`ARSIN_SQUARED`), term by term.
    """

    by_form = 4.0

    def __init__(self, kappa: Tensor, far: bool = False) -> None:
        kappa = kappa.detach()
        magnitude = kappa.abs().clamp_min(_SMALLEST_KAPPA)
        self.kappa: Number = torch.where(kappa > 0, magnitude, -magnitude)
        self.magnitude: Number = magnitude
        self.hyperbolic: Tensor | bool = kappa <= 0
        self.nearly_flat: Tensor | bool = magnitude < _FLAT
        if kappa.device.type == "cpu":
            self.kappa = self.kappa.item()
            self.magnitude = magnitude.item()
            self.hyperbolic = bool(self.hyperbolic)
            self.nearly_flat = bool(self.nearly_flat)
        self.form_scale = 4 * self.magnitude  # forms w
        self.far = far
        # Of pairs with D < 64 the first term that is left out is below 1e-7 of the first.
        terms = _TERMS
        if isinstance(self.magnitude, float) and kappa.dtype == torch.float32 and not far:
            largest = math.sinh(math.sqrt(64 * min(self.magnitude, _FLAT)) / 2) ** 2
            terms = min(_TERMS, math.ceil(math.log(1e-7) / math.log(largest)))
        self.series = kappa_series(kappa.sign(), terms)
        series = 1 / (4 * self.kappa * self.kappa)
        closed = -1 / (self.kappa * self.magnitude)
        self.by_kappa = series * self.nearly_flat + closed * (1 - 1 * self.nearly_flat)

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:
        """Fill `slope` with `t / r`, `entry` with the difference in `dD/d(kappa)` or its series."""
        w = form.clamp_min_(_SMALLEST_FORM)
        _choose(self.hyperbolic, _hyperbolic_angle, _spherical_angle, w, entry, slope)
        torch.div(entry, slope, out=slope)
        entry.square_()
        if isinstance(self.magnitude, Tensor):
            total.sub_(entry / self.magnitude)
        else:
            total.sub_(entry, alpha=1 / self.magnitude)
        _choose(self.nearly_flat, self._kappa_series, _kappa_difference, w, slope, entry)

    def _kappa_series(self, w: Tensor, slope: Tensor, entry: Tensor) -> None:
        """`w^2 sum_n n c_n y^(n-1)`, `4 kappa^2` times `dD/d(kappa)`, for small `y = +-w / 4`.

        Far pairs have the closed form, in the same units.
        """
        if self.far:
            closed = torch.addcmul(entry, w, slope, value=-1)
            closed.mul_(-4 * self.kappa / self.magnitude)
            beyond = w > SERIES_REACH
        w.clamp_max_(4)
        entry.copy_(self.series[-1])
        for coefficient in self.series[-2::-1]:
            torch.addcmul(coefficient, entry, w, out=entry)
        entry.mul_(w).mul_(w)
        if self.far:
            torch.where(beyond, closed, entry, out=entry)


class PseudoProfile(Profile):
    """`D = -A / kappa` of the pseudo-hyperboloid as a function of `m` and of kappa.

    `A(m)` and `m` are those of `squared_angle` in `curvlab.manifolds.pseudo_hyperboloid_space`, a
    form that has any sign. `dD/dm = A' / -kappa`, and at fixed m `dD/d(kappa) = A / kappa^2`.
    """

    def __init__(self, kappa: Tensor, far: bool = False) -> None:  # noqa: ARG002
        kappa = kappa.detach()
        # A number, as the other profile's, where looking at it does not wait for a device.
        self.magnitude: Number = -kappa if kappa.device.type != "cpu" else -kappa.item()
        self.by_form = 1 / self.magnitude
        self.by_kappa = self.by_form * self.by_form

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:
        """Fill `slope` with `A'`, `entry` with `A`.

        With q the part of m in [0, 1] and w the length of the rest, both branches are one sum:
        `sqrt A = 2 asin(sqrt q) + 2 asinh(sqrt w)`. The form is overwritten.
        """
        torch.clamp(form, _SMALLEST_FORM, 1, out=entry)
        torch.addcmul(entry, entry, entry, value=-1, out=slope)
        beyond = form.sub_(entry).abs()
        root = torch.addcmul(beyond, beyond, beyond).clamp_min_(_SMALLEST_FORM)
        # |m (1 - m)|, away from 0 at both of its ends, where light joins and where geodesics end.
        slope.add_(root).clamp_min_(_SMALLEST_PSEUDO).sqrt_()
        # 2 asinh(sqrt w) = log(1 + 2 w + 2 sqrt(w + w^2)): torch's asinh takes 30 times as long.
        joined = root.sqrt_().add_(beyond).mul_(2).log1p_()
        angle = entry.sqrt_().asin_().mul_(2).add_(joined)
        torch.div(torch.copysign(angle, form, out=beyond), slope, out=slope).mul_(2)
        total.sub_(torch.mul(angle.square_(), self.by_form, out=beyond))


def kappa_series(sign: Number, terms: int = _TERMS) -> list[Any]:
    """Coefficients, by powers of w, of `4 kappa^2 / w^2` times `dD/d(kappa)`."""
    return [n * ARSIN_SQUARED[n] * (sign / 4) ** (n - 1) for n in range(1, terms + 1)]


def _kappa_difference(w: Tensor, slope: Tensor, entry: Tensor) -> None:
    """`t^2 - w t / r` from `w`, `t / r` and `t^2`."""
    entry.addcmul_(w, slope, value=-1)


def _hyperbolic_angle(w: Tensor, angle: Tensor, root: Tensor) -> None:
    """`t = 2 asinh(sqrt(w / 4)) = log(1 + w / 2 + r)` and `r`: one logarithm, right down to 0."""
    torch.addcmul(w, w, w, value=0.25, out=root).sqrt_()
    torch.add(root, w, alpha=0.5, out=angle).log1p_()


def _spherical_angle(w: Tensor, angle: Tensor, root: Tensor) -> None:
    """`t = 2 asin(sqrt(w / 4))` and `r`."""
    w = torch.clamp(w, max=_ANTIPODE, out=angle)
    torch.addcmul(w, w, w, value=-0.25, out=root).sqrt_()
    angle.mul_(0.25).sqrt_().asin_().mul_(2)


def _choose(
    condition: Tensor | bool,
    if_true: Callable[..., None],
    if_false: Callable[..., None],
    given: Tensor,
    *results: Tensor,
) -> None:
    """Fill the results by one of two functions, or by both where the condition is not known."""
    if isinstance(condition, bool):
        return (if_true if condition else if_false)(given, *results)
    alternatives = [result.clone() for result in results]
    if_true(given.clone(), *results)  # functions may overwrite what they are given
    if_false(given, *alternatives)
    for result, alternative in zip(results, alternatives, strict=True):
        torch.where(condition, result, alternative, out=result)
    return None


class PairForm(NamedTuple):
    """A bilinear form of two points, and the function of it that their squared distance is.

    Attributes:
        left: features of the first point, `[components, features, nodes]`.
        right: functions of the second point, whose products with those of the first are the form.
        kappa: curvatures `[components]`; None where the squared distance is the form.
        profile: the squared distance where it is curved.
    """

    left: Tensor
    right: Tensor
    kappa: Tensor | None
    profile: type[CurvedProfile | PseudoProfile] = CurvedProfile


def form_features(x: Tensor, y: Tensor, norms: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """`[norms, weight, -2 x]` and `[weight, norms, y]`, as `[components, 2 + block, nodes]`.

    Shapes: blocks x and y of the points `[nodes, components, block]`, norms and weight
    `[nodes, components, 1]`.
    """
    left = torch.cat([norms, weight, -2 * x], dim=-1)
    right = torch.cat([weight, norms, y], dim=-1)
    return left.permute(1, 2, 0).contiguous(), right.permute(1, 2, 0).contiguous()


def weighted_form(
    blocks: Tensor, weight: Tensor, kappa: Tensor | None, scale: float = 1.0
) -> PairForm:
    """The form `scale w_x w_y |x - y|^2` of blocks `[nodes, components, block]` and weights w."""
    weighted = weight * blocks
    norms = (weighted * blocks).sum(-1, keepdim=True)
    left, right = form_features(weighted, weighted, norms, weight)
    return PairForm(scale * left, right, kappa)

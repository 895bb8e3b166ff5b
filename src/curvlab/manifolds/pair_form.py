"""Squared distances of many pairs of points as functions of one bilinear form, with derivatives.

On every space of the reconstruction task, the squared distance `D` of two points is a function of a
form that is bilinear in features of the points: `|x - y|^2` on flat space,
`u^2 = |x - y|^2 / ((1 + kappa |x|^2) (1 + kappa |y|^2))` on the stereographic model, and
`kappa <x - y, x - y> / 4` on the pseudo-hyperboloid. A profile evaluates that function on a tile of
pairs, in arrays that the caller allocates.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds.curved_trig import ARSIN_SQUARED

# Floors that keep quotients of two zeros finite, far below the resolution of float32. Roots of
# zeros take 40 times as long as other roots on CPU.
_SMALLEST_KAPPA = 1e-10
_SMALLEST_FORM = 1e-30
# Just short of the antipode (4 sin^2 = 4), where the distance has a kink.
_ANTIPODE = 4 - 4e-6
# A few roundings of m (1 - m): the slope is finite at m = 0 and has a pole at m = 1.
_SMALLEST_PSEUDO = 1e-6
# |kappa| below which d(distance)/d(kappa) is summed from its series: the closed form divides a
# difference of order kappa^2 by kappa^2.
_FLAT = 2e-2
_TERMS = 8
# Largest w for which 8 terms are exact in float32; above, the closed form loses no digits.
SERIES_REACH = 0.4
Number = Tensor | float


class Profile:
    """`D` as a function of a form; in this class `D` is the form.

    Attributes:
        form_scale: Factor of the features before their product.
        by_form: `dD / d(form)` in units of the slopes from `evaluate`.
        by_kappa: `dD / d(kappa)` in units of the entries from `evaluate`.
    """

    form_scale: Number = 1.0
    by_form: Number = 1.0
    by_kappa: Number = 0.0

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:  # noqa: ARG002
        """Subtract `D` of a tile of scaled forms from `total`; the forms are overwritten.

        Curved spaces also fill the slopes and entries.
        """
        total.sub_(form.clamp_min_(0))

    def subtract(self, form: Tensor, total: Tensor, angle: Tensor, root: Tensor) -> None:  # noqa: ARG002
        """Subtract `D` from `total` and no more; the other arrays are overwritten."""
        total.sub_(form.clamp_min_(0))


class CurvedProfile(Profile):
    """`D = (2 arsin_kappa(u))^2` as a function of the form `u^2` and of kappa.

    With `w = 4 |kappa| u^2`, the double angle `t = 2 asinh(sqrt(w / 4))` (hyperbolic) or
    `2 asin(sqrt(w / 4))` (spherical) and `r = sqrt(w (1 +- w / 4))`: `D = t^2 / |kappa|`,
    `dD/d(u^2) = 4 t / r`, and at fixed `u^2` `dD/d(kappa) = (w t / r - t^2) / (kappa |kappa|)`.

    On CPU the sign of kappa chooses the branch. On an accelerator both branches are computed, since
    reading the sign would synchronise.

    Args:
        kappa: Curvature, a scalar.
        far: Whether pairs with `D > 64` count. Their weights `exp(-D)` are negligible, in contrast
            to weights `exp(-sqrt D)` and the weights 1 of edges.

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
        # For pairs with D < 64 the first omitted term is below 1e-7 of the first one.
        terms = _TERMS
        if isinstance(self.magnitude, float) and kappa.dtype == torch.float32 and not far:
            largest = math.sinh(math.sqrt(64 * min(self.magnitude, _FLAT)) / 2) ** 2
            terms = min(_TERMS, math.ceil(math.log(1e-7) / math.log(largest)))
        self.series = kappa_series(kappa.sign(), terms)
        series = 1 / (4 * self.kappa * self.kappa)
        closed = -1 / (self.kappa * self.magnitude)
        self.by_kappa = series * self.nearly_flat + closed * (1 - 1 * self.nearly_flat)

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:
        """Fill `slope` with `t / r`, and `entry` with the difference or series in `dD/d(kappa)`."""
        w = form.clamp_min_(_SMALLEST_FORM)
        _choose(self.hyperbolic, _hyperbolic_angle, _spherical_angle, w, entry, slope)
        torch.div(entry, slope, out=slope)
        entry.square_()
        if isinstance(self.magnitude, Tensor):
            total.sub_(entry / self.magnitude)
        else:
            total.sub_(entry, alpha=1 / self.magnitude)
        _choose(self.nearly_flat, self._kappa_series, _kappa_difference, w, slope, entry)

    def subtract(self, form: Tensor, total: Tensor, angle: Tensor, root: Tensor) -> None:
        """Subtract `D` from `total` and no more; the other arrays are overwritten."""
        w = form.clamp_min_(_SMALLEST_FORM)
        _choose(self.hyperbolic, _hyperbolic_angle, _spherical_angle, w, angle, root)
        total.addcmul_(angle, angle, value=-1 / float(self.magnitude))

    def _kappa_series(self, w: Tensor, slope: Tensor, entry: Tensor) -> None:
        """Fill `entry` with `w^2 sum_n n c_n y^(n-1) = 4 kappa^2 dD/d(kappa)`, `y = +-w / 4`.

        Far pairs get the closed form in the same units.
        """
        if self.far:
            closed = torch.addcmul(entry, w, slope, value=-1)
            closed.mul_(-4 * self.kappa / self.magnitude)
            is_far = w > SERIES_REACH
        w.clamp_max_(4)
        entry.copy_(self.series[-1])
        for coefficient in self.series[-2::-1]:
            torch.addcmul(coefficient, entry, w, out=entry)
        entry.mul_(w).mul_(w)
        if self.far:
            torch.where(is_far, closed, entry, out=entry)


class PseudoProfile(Profile):
    """`D = -A / kappa` of the pseudo-hyperboloid as a function of `m` and of kappa.

    `A(m)` and `m`, a form of any sign, are those of `squared_angle` in
    `curvlab.manifolds.pseudo_hyperboloid_space`. `dD/dm = A' / -kappa`, and at fixed m
    `dD/d(kappa) = A / kappa^2`.
    """

    def __init__(self, kappa: Tensor, far: bool = False) -> None:  # noqa: ARG002
        kappa = kappa.detach()
        # A number on CPU only: reading it would synchronise an accelerator.
        self.magnitude: Number = -kappa if kappa.device.type != "cpu" else -kappa.item()
        self.by_form = 1 / self.magnitude
        self.by_kappa = self.by_form * self.by_form

    def evaluate(self, form: Tensor, total: Tensor, slope: Tensor, entry: Tensor) -> None:
        """Fill `slope` with `A'` and `entry` with `A`; the form is overwritten.

        With q the part of m in [0, 1] and w the absolute value of the rest, all branches are one
        sum: `sqrt A = 2 asin(sqrt q) + 2 asinh(sqrt w)`.
        """
        torch.clamp(form, _SMALLEST_FORM, 1, out=entry)
        torch.addcmul(entry, entry, entry, value=-1, out=slope)
        excess = form.sub_(entry).abs()
        root = torch.addcmul(excess, excess, excess).clamp_min_(_SMALLEST_FORM)
        # |m (1 - m)|, kept away from 0 at m = 0 (points joined by light) and m = 1 (no geodesic).
        slope.add_(root).clamp_min_(_SMALLEST_PSEUDO).sqrt_()
        # 2 asinh(sqrt w) = log(1 + 2 w + 2 sqrt(w + w^2)): torch's asinh takes 30 times as long.
        hyperbolic = root.sqrt_().add_(excess).mul_(2).log1p_()
        angle = entry.sqrt_().asin_().mul_(2).add_(hyperbolic)
        torch.div(torch.copysign(angle, form, out=excess), slope, out=slope).mul_(2)
        total.sub_(torch.mul(angle.square_(), self.by_form, out=excess))


def kappa_series(sign: Number, terms: int = _TERMS) -> list[Any]:
    """Coefficients, by powers of w, of `4 kappa^2 / w^2` times `dD/d(kappa)`."""
    return [n * ARSIN_SQUARED[n] * (sign / 4) ** (n - 1) for n in range(1, terms + 1)]


def _kappa_difference(w: Tensor, slope: Tensor, entry: Tensor) -> None:
    """`t^2 - w t / r` from `w`, `t / r` and `t^2`."""
    entry.addcmul_(w, slope, value=-1)


def _hyperbolic_angle(w: Tensor, angle: Tensor, root: Tensor) -> None:
    """`t = 2 asinh(sqrt(w / 4)) = log(1 + w / 2 + r)` and `r`, accurate near 0."""
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
    form: Tensor,
    *results: Tensor,
) -> None:
    """Fill the results by one of two functions, or by both for a condition on an accelerator."""
    if isinstance(condition, bool):
        function = if_true if condition else if_false
        function(form, *results)
        return
    alternatives = [result.clone() for result in results]
    if_true(form.clone(), *results)  # functions may overwrite the form
    if_false(form, *alternatives)
    for result, alternative in zip(results, alternatives, strict=True):
        torch.where(condition, result, alternative, out=result)


class PairForm(NamedTuple):
    """A bilinear form of two points, and their squared distance as a function of it.

    Attributes:
        left: Features of the first point, `[components, features, nodes]`.
        right: Features of the second point, whose products with `left` are the form.
        kappa: Curvatures `[components]`; None if the squared distance is the form.
        profile: Squared distance as a function of the form, with `kappa`.
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

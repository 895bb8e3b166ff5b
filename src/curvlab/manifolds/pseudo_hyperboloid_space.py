r"""The pseudo-hyperboloid: a hyperboloid with several axes of time.

Points are `x = [time, space]` of width `dim`, with `<x, x> = 1 / kappa` under the product
`<x, y> = -time . time' + space . space'`, kappa < 0. With one axis of time it is the Lorentz model,
with `dim` axes a sphere.

It is also a sphere times a flat space: `u = time / |time|` lies on the unit sphere,
`s = sqrt(-kappa) space` is any vector, and `time = sqrt((1 + |s|^2) / -kappa) u`. Maps are those of
this product, with the origin at `u = (1, 0, ...)`, `s = 0`. Tangent vectors there, `[..., dim -
1]`, have `time_dims - 1` coordinates along the sphere, followed by those of `s`. Distances are
those of the pseudo-hyperboloid; the two geometries agree only on a sphere.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from curvlab.manifolds.base import Manifold, root_of_sqdist
from curvlab.manifolds.curvature import Curvature, not_positive
from curvlab.manifolds.curved_trig import arsin_ratio, cosine, safe_sqrt, sin_ratio
from curvlab.manifolds.pair_form import PairForm, PseudoProfile, form_features
from curvlab.options import Learnable, NegativeFloat, PositiveInt

_ANTIPODE = 1 - 1e-12
"""Largest m below 1. Beyond 1 there is no geodesic, and at 1 the distance has a kink."""


class PseudoHyperboloid(Manifold):
    """Pseudo-hyperboloid of signed curvature kappa < 0; points are `[..., dim]`, times first.

    Tangent vectors at the origin are `[..., dim - 1]`. The distance is not a metric: different
    points that are joined by light are at distance 0.

    As in Q-GCN, maps and distances belong to two geometries. `expmap0`, `logmap0`, `expmap`,
    `logmap`, `geodesic`, `add` and `transport0` are maps of the product of a sphere of curvature
    -kappa and a flat space, and agree with each other. `dist`, `sqdist`, `dist0` and the pairwise
    distances are those of the pseudo-hyperboloid. In general the distance from the origin is
    therefore not the length of `logmap0`, and the point at the share t of `geodesic` is not at the
    share t of `dist`. Both agree on a sphere (`time_dims` equal to `dim`), and for points whose
    `space` is 0. `weighted_mean` is the exponential of a mean of logarithms at the origin, so that
    the mean of two points may have different distances from them.

    Args:
        time_dims: number of axes of time, from 1 (the Lorentz model) to `dim` (a sphere).
        kappa: initial curvature.
        learnable: whether the curvature is a parameter.
        min: open lower bound of the curvature, None for none.
        max: open upper bound of the curvature, at most 0.

    Raises:
        UsageError: the curvature is not between its bounds.

    Source: Xiong et al. 2022, "Pseudo-Riemannian graph convolutional networks", Sections 3 and 4,
    where `beta = 1 / kappa`; the distance is that of FPS-T's baselines.
    """

    codimension = 1

    def __init__(
        self,
        time_dims: PositiveInt = 8,
        kappa: NegativeFloat = -1.0,
        learnable: Learnable = False,
        min: float | None = None,
        max: float = 0.0,
    ) -> None:
        super().__init__()
        self.time_dims = time_dims
        self.curvature = Curvature(kappa, None, learnable, min, not_positive(max))

    @property
    def kappa(self) -> Tensor:
        return self.curvature()

    dist = root_of_sqdist

    def inner(self, x: Tensor, y: Tensor) -> Tensor:
        products = x * y
        return products[..., self.time_dims :].sum(-1) - products[..., : self.time_dims].sum(-1)

    def expmap0(self, v: Tensor) -> Tensor:
        """Exponential at the origin of the sphere times the flat space, `[..., dim]`.

        For `v = [along, s]`, `u = cos(w) e + sin(w) along / |along|` with
        `w = sqrt(-kappa) |along|`. The `dist` from the origin is `|along|` if s is 0, up to half a
        turn, and `asinh |s| / sqrt(-kappa)` if `along` is 0.
        """
        kappa = self.kappa
        turns = self.time_dims - 1
        along = v[..., :turns] * (-kappa).sqrt()
        s = v[..., turns:]
        squared = along.square().sum(-1, keepdim=True)
        return _point(torch.cat([cosine(squared), sin_ratio(squared) * along], -1), s, kappa)

    def logmap0(self, x: Tensor) -> Tensor:
        """Inverse of `expmap0` for less than half a turn, `[..., dim - 1]`.

        Its length is in general not `dist0`.
        """
        root = (-self.kappa).sqrt()
        first = x[..., :1]
        rest = x[..., 1 : self.time_dims]
        length = safe_sqrt(rest.square().sum(-1, keepdim=True))
        is_turned = length > 0
        safe = torch.where(is_turned, length, 1.0)
        # Angle from the origin divided by `length`, near the origin 1 / first.
        near = 1 / torch.where(is_turned, 1.0, first)
        ratio = torch.where(is_turned, torch.atan2(safe, first) / safe, near)
        return torch.cat([rest * ratio / root, x[..., self.time_dims :] * root], -1)

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        """Exponential at x `[..., dim]` of u `[..., dim - 1]`, transported there from the origin.

        Map and transport are those of the sphere times the flat space. If `time / |time|` of x is
        opposite to the origin's, the transport is that to a nearby point.
        """
        kappa = self.kappa
        turns = self.time_dims - 1
        time = x[..., : self.time_dims]
        unit = time / time.square().sum(-1, keepdim=True).sqrt()
        along = u[..., :turns] * (-kappa).sqrt()
        squared = along.square().sum(-1, keepdim=True)
        zero = torch.zeros_like(squared)
        # From e to unit a tangent vector w becomes w - <unit, w> (e + unit) / (1 + <e, unit>).
        start = torch.cat([zero, along], -1)
        base = torch.cat([zero + 1, torch.zeros_like(along)], -1)
        slant = (unit * start).sum(-1, keepdim=True) / (1 + unit[..., :1]).clamp(min=1e-6)
        moved = start - slant * (base + unit)
        turned = cosine(squared) * unit + sin_ratio(squared) * moved
        turned = turned / turned.square().sum(-1, keepdim=True).sqrt()
        return _point(turned, x[..., self.time_dims :] * (-kappa).sqrt() + u[..., turns:], kappa)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        """Inverse of `expmap` at x, `[..., dim - 1]`; its length is in general not `dist`."""
        root = (-self.kappa).sqrt()
        t = self.time_dims
        u = normalize(x[..., :t], dim=-1)
        end = normalize(y[..., :t], dim=-1)
        half = (end - u).square().sum(-1, keepdim=True) / 4  # the squared sine of half the angle
        log = arsin_ratio(half) * (1 - half).clamp(min=1e-12).rsqrt() * (end - u + 2 * half * u)
        slant = log[..., :1] / (1 + u[..., :1]).clamp(min=1e-6)
        along = log[..., 1:] - slant * u[..., 1:]
        return torch.cat([along / root, root * (y - x)[..., t:]], -1)

    def geodesic(self, t: Tensor | float, x: Tensor, y: Tensor) -> Tensor:
        """Points at the shares t of the geodesic of the sphere times the flat space, `[..., dim]`.

        The share 0 is x, and 1 is y. The points lie on the pseudo-hyperboloid, but are a geodesic
        of it only on a sphere: in general `dist` from x is not `t dist(x, y)`.
        """
        return super().geodesic(t, x, y)

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distance `[...]` on the pseudo-hyperboloid (`squared_angle`)."""
        difference = x.double() - y.double()
        k = self.kappa.double()
        return (squared_angle(k / 4 * self.inner(difference, difference)) / -k).to(x.dtype)

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        a = x.double()
        b = y.double()
        k = self.kappa.double()
        signs = torch.ones_like(a[..., :1, :])
        signs[..., : self.time_dims] = -1
        x2 = self.inner(a, a).unsqueeze(-1)
        y2 = self.inner(b, b).unsqueeze(-2)
        m = k / 4 * (x2 + y2 - 2 * (a * signs) @ b.mT)
        return (squared_angle(m) / -k).to(x.dtype)

    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        return self.expmap(self.expmap0(u), v)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`exp_x(P(log_0 y))` of the sphere times the flat space, `[..., dim]`."""
        return self.expmap(x, self.logmap0(y))

    def pair_form(self, x: Tensor) -> PairForm:
        """The form `m = -<x' - y', x' - y'>` with `x' = sqrt(-kappa) x / 2`."""
        kappa = self.kappa
        scaled = ((-kappa).sqrt() / 2 * x).unsqueeze(1)
        time, rest = scaled.split([self.time_dims, x.shape[1] - self.time_dims], dim=-1)
        signed = torch.cat([time, -rest], dim=-1)  # -<x, y> = signed x . y
        norms = (signed * scaled).sum(-1, keepdim=True)
        sides = form_features(signed, scaled, norms, torch.ones_like(norms))
        return PairForm(*sides, kappa.reshape(1), profile=PseudoProfile)

    def extra_repr(self) -> str:
        return f"time_dims={self.time_dims}"


def _point(u: Tensor, s: Tensor, kappa: Tensor) -> Tensor:
    """The point of a unit vector u of the sphere and a vector s of flat space."""
    time = (1 + s.square().sum(-1, keepdim=True)).sqrt() * u
    return torch.cat([time, s], -1) / (-kappa).sqrt()


def squared_angle(m: Tensor) -> Tensor:
    r"""`-kappa d^2` as a function of `m = kappa <x - y, x - y> / 4 = (1 - kappa <x, y>) / 2`.

    It is `(2 asinh sqrt(-m))^2` for m < 0 (as in hyperbolic space), `(2 asin sqrt m)^2` up to 1 (as
    on a sphere), and `(pi + 2 acosh sqrt m)^2` beyond 1, where no geodesic joins the points and the
    path goes through the antipode, at distance pi. The result is not negative, and 0 if points are
    equal or joined by light.
    """
    near = m.clamp(max=_ANTIPODE)
    direct = 4 * near.abs() * arsin_ratio(near).square()
    through_antipode = (math.pi + 2 * torch.asinh(safe_sqrt(m - 1))).square()
    return torch.where(m < 1, direct, through_antipode)

r"""The pseudo-hyperboloid: a hyperboloid with several axes of time, part sphere, part hyperbolic.

Points are `x = [time, space]` of width `dim`, with `<x, x> = 1 / kappa` under the product
`<x, y> = -time . time' + space . space'`, kappa < 0. With one axis of time it is the Lorentz model,
with `dim` of them a sphere. It is a sphere times a flat space: `u = time / |time|` lies on the unit
sphere, `s = sqrt(-kappa) space` anywhere, and `time = sqrt((1 + |s|^2) / -kappa) u`. Maps are those
of that product, with the origin at `u = (1, 0, ...)`, `s = 0`, where tangent vectors
`[..., dim - 1]` have `time_dims - 1` coordinates along the sphere, then those of `s`.

`kappa` is a tensor `[]`, `time_dims` the number of axes of time.

Source: Xiong et al. 2022, "Pseudo-Riemannian graph convolutional networks", Sections 3 and 4, where
`beta = 1 / kappa`; the distance is that of FPS-T's baselines.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from curvlab.manifolds.curved_trig import arsin_ratio, cosine, safe_sqrt, sin_ratio

_ANTIPODE = 1 - 1e-12
"""Just short of m = 1, beyond which no geodesic leads and where the distance has a kink."""


def inner(x: Tensor, y: Tensor, time_dims: int) -> Tensor:
    """`<x, y> = -sum_(i < time_dims) x_i y_i + sum_(i >= time_dims) x_i y_i`, `[...]`."""
    products = x * y
    return products[..., time_dims:].sum(-1) - products[..., :time_dims].sum(-1)


def expmap0(v: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """Point `[..., dim]` that the tangent vector `v [..., dim - 1]` at the origin leads to."""
    along, s = v[..., : time_dims - 1] * (-kappa).sqrt(), v[..., time_dims - 1 :]
    squared = along.square().sum(-1, keepdim=True)
    return _point(torch.cat([cosine(squared), sin_ratio(squared) * along], -1), s, kappa)


def logmap0(x: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """The tangent vector `[..., dim - 1]` at the origin that leads to `x`; inverse of `expmap0`."""
    first, rest = x[..., :1], x[..., 1:time_dims]
    length = safe_sqrt(rest.square().sum(-1, keepdim=True))
    apart = length > 0
    safe = torch.where(apart, length, 1.0)
    # The angle from the origin over the length that it is read from; 1 / first near the origin.
    ratio = torch.where(apart, torch.atan2(safe, first) / safe, 1 / torch.where(apart, 1.0, first))
    return torch.cat([rest * ratio / (-kappa).sqrt(), x[..., time_dims:] * (-kappa).sqrt()], -1)


def expmap(x: Tensor, v: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """Exponential at `x [..., dim]` of `v [..., dim - 1]` transported there from the origin.

    Not defined where `u` is opposite to the origin's; the transport is taken from nearby there.
    """
    time = x[..., :time_dims]
    u = time / time.square().sum(-1, keepdim=True).sqrt()
    along = v[..., : time_dims - 1] * (-kappa).sqrt()
    squared = along.square().sum(-1, keepdim=True)
    zero = torch.zeros_like(squared)
    # From e to u a tangent vector w becomes w - <u, w> (e + u) / (1 + <e, u>).
    start = torch.cat([zero, along], -1)
    base = torch.cat([zero + 1, torch.zeros_like(along)], -1)
    slant = (u * start).sum(-1, keepdim=True) / (1 + u[..., :1]).clamp(min=1e-6)
    moved = start - slant * (base + u)
    turned = cosine(squared) * u + sin_ratio(squared) * moved
    turned = turned / turned.square().sum(-1, keepdim=True).sqrt()
    return _point(turned, x[..., time_dims:] * (-kappa).sqrt() + v[..., time_dims - 1 :], kappa)


def logmap(x: Tensor, y: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """Inverse of `expmap`: the logarithm of `y` at `x`, transported to the origin."""
    root, (u, end) = (-kappa).sqrt(), (normalize(p[..., :time_dims], dim=-1) for p in (x, y))
    half = (end - u).square().sum(-1, keepdim=True) / 4  # the squared sine of half the angle
    log = arsin_ratio(half) * (1 - half).clamp(min=1e-12).rsqrt() * (end - u + 2 * half * u)
    slant = log[..., :1] / (1 + u[..., :1]).clamp(min=1e-6)
    along = log[..., 1:] - slant * u[..., 1:]
    return torch.cat([along / root, root * (y - x)[..., time_dims:]], -1)


def _point(u: Tensor, s: Tensor, kappa: Tensor) -> Tensor:
    """The point of a unit vector and a vector of flat space."""
    time = (1 + s.square().sum(-1, keepdim=True)).sqrt() * u
    return torch.cat([time, s], -1) / (-kappa).sqrt()


def sqdist(x: Tensor, y: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """Squared distance `[...]`, see `squared_angle`, in float64 from the points."""
    difference = x.double() - y.double()
    m = kappa.double() / 4 * inner(difference, difference, time_dims)
    return (squared_angle(m) / -kappa.double()).to(x.dtype)


def pairwise_sqdist(x: Tensor, y: Tensor, kappa: Tensor, time_dims: int) -> Tensor:
    """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`."""
    a, b, k = x.double(), y.double(), kappa.double()
    signs = torch.ones_like(a[..., :1, :])
    signs[..., :time_dims] = -1
    own, other = inner(a, a, time_dims).unsqueeze(-1), inner(b, b, time_dims).unsqueeze(-2)
    m = k / 4 * (own + other - 2 * (a * signs) @ b.mT)
    return (squared_angle(m) / -k).to(x.dtype)


def squared_angle(m: Tensor) -> Tensor:
    r"""`-kappa d^2` as a function of `m = kappa <x - y, x - y> / 4 = (1 - kappa <x, y>) / 2`.

    `(2 asinh sqrt(-m))^2` for m < 0 (joined as in hyperbolic space), `(2 asin sqrt m)^2` up to 1
    (as on a sphere), and beyond, where no geodesic joins the two, `(pi + 2 acosh sqrt m)^2`: by way
    of the antipode, at distance pi. Not negative; 0 where points are the same or joined by light.
    """
    near = m.clamp(max=_ANTIPODE)
    joined = 4 * near.abs() * arsin_ratio(near).square()
    broken = (math.pi + 2 * torch.asinh(safe_sqrt(m - 1))).square()
    return torch.where(m < 1, joined, broken)

"""Other coordinates of stereographic points: Klein, half-space, hyperboloid, sphere.

Each pair of functions is an isometry of the same space, `to_...` from the stereographic points
`[..., dim]` of `curvlab.manifolds.stereographic` and `from_...` back. `kappa` is as there.

Source: Cannon et al. 1997, Hyperbolic geometry, section 7; Lee 2018, Introduction to Riemannian
manifolds, theorem 3.7.
"""

import torch
from torch import Tensor

from curvlab.manifolds import kernels, lorentz
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.kernels import positive_curvature, public_functions, squared_norm
from curvlab.manifolds.stereographic import WIDE, mobius_half


def to_klein(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Klein coordinates 2 x / (1 - kappa |x|^2), in which geodesics are straight, `[..., dim]`.

    For kappa < 0 the image is the ball of radius 1 / sqrt(-kappa). For kappa > 0 this is the
    gnomonic projection, which maps antipodes to one point. It is not defined on the equator, where
    the result is only finite. The limit for kappa -> 0 is 2 x.
    """
    w = kernels.shorten(x.double())
    k = kernels.curvature_like(kappa, WIDE, x)
    gap = 1 - k * squared_norm(w)
    nonzero = torch.where(gap.abs() < tolerance(WIDE).floor, tolerance(WIDE).floor, gap)
    return (2 * w / nonzero).to(x.dtype)


def from_klein(x: Tensor, kappa: Tensor | float) -> Tensor:
    """X / (1 + sqrt(1 + kappa |x|^2)), the inverse of `to_klein`; on a sphere, the nearer half."""
    return mobius_half(x, kappa)


def to_half_space(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Point of the upper half-space, the height last, `[..., dim]`, for kappa < 0.

    (2 X', 1 - |X|^2) / (|X'|^2 + (1 - X_n)^2) with X = sqrt(-kappa) x = (X', X_n), an inversion
    that maps the origin to (0, ..., 0, 1). The metric is |dy|^2 / (-kappa y_n^2).

    Raises:
        UsageError: The curvature is a number that is not negative.
    """
    k = kernels.negative_curvature(kappa, WIDE, x)
    w = (-k).sqrt() * x.double()
    rest, last = w.split([x.shape[-1] - 1, 1], -1)
    height = kernels.one_plus(-squared_norm(w), x.dtype)
    from_pole = squared_norm(rest) + (1 - last).square()
    # (1 - |X|)^2, the least inside the ball, is at least (1 - |X|^2)^2 / 4.
    from_pole = from_pole.clamp(min=height.square() / 4)
    return (torch.cat([2 * rest, height], -1) / from_pole).to(x.dtype)


def from_half_space(y: Tensor, kappa: Tensor | float) -> Tensor:
    """Inverse of `to_half_space`: (2 y', |y|^2 - 1) / (|y'|^2 + (1 + y_n)^2) / sqrt(-kappa)."""
    k = kernels.negative_curvature(kappa, WIDE, y)
    w = kernels.shorten(y.double())
    rest, height = w.split([y.shape[-1] - 1, 1], -1)
    side = squared_norm(rest)
    last = side + (height - 1) * (height + 1)
    scale = (side + (1 + height).square()) * (-k).sqrt()
    return (torch.cat([2 * rest, last], -1) / scale).to(y.dtype)


def to_sphere(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Point `[..., 1 + dim]` of the sphere of radius 1 / sqrt(kappa) around 0, for kappa > 0.

    (1 - kappa |x|^2, 2 sqrt(kappa) x) / (sqrt(kappa) (1 + kappa |x|^2)), the inverse of the
    stereographic projection; the coordinate along the axis comes first, as time does.

    Raises:
        UsageError: The curvature is a number that is not positive.
    """
    k = positive_curvature(kappa, WIDE, x)
    w = kernels.shorten(x.double())
    z = k * squared_norm(w)
    return (torch.cat([(1 - z) / k.sqrt(), 2 * w], -1) / (1 + z)).to(x.dtype)


def from_sphere(x: Tensor, kappa: Tensor | float) -> Tensor:
    """Stereographic projection s / (1 + sqrt(kappa) t), `[..., dim]`, the inverse of `to_sphere`.

    Beyond the equator, where t < 0 and the denominator cancels, the formula is s (1 - sqrt(kappa)
    t) / (kappa |s|^2). The antipode of the origin is the point at infinity, for which the result is
    only finite.
    """
    k = positive_curvature(kappa, WIDE, x)
    t, s = x.double().split([1, x.shape[-1] - 1], -1)
    cosine = k.sqrt() * t
    is_far = cosine < 0
    denominator = (k * squared_norm(s)).clamp(min=torch.finfo(torch.float32).tiny)
    near = 1 / (1 + torch.where(is_far, 0.0, cosine))
    return (s * torch.where(is_far, (1 - cosine) / denominator, near)).to(x.dtype)


to_hyperboloid = lorentz.from_stereographic
from_hyperboloid = lorentz.to_stereographic

__all__ = public_functions(globals(), "from_hyperboloid", "to_hyperboloid")  # noqa: PLE0605

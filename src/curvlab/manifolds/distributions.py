"""Means, variances and a normal distribution of stereographic points."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, Normal, constraints

from curvlab.manifolds import stereographic
from curvlab.manifolds.curved_trig import sin_ratio, tan_ratio
from curvlab.manifolds.kernels import curvature_like, squared_norm

__all__ = ["WrappedNormal", "frechet_mean", "frechet_variance"]

_STEPS = 20
"""Number of Newton steps from the gyro-midpoint, each at most 1 / sqrt|kappa| long."""

_WITH_DERIVATIVES = 2
"""Number of last steps that are differentiated: one for first derivatives, two for second."""


def frechet_mean(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Minimiser m of sum_j w_j dist(m, x_j)^2, `[..., dim]` of `[..., n, dim]` and `[..., n]`.

    Newton's method iterates m <- exp_m(H^-1 sum_j w_j log_m(x_j)) in float64. The Hessian H has the
    factor 1 along log_m(x_j) and sqrt(kappa) d cot(sqrt(kappa) d) across it. Derivatives are those
    of the minimiser, not of the steps. Weights must not be negative, and on a sphere the points
    must be nearer to m than a quarter of a great circle. `kappa` broadcasts against the dimensions
    before n.

    Source: Karcher 1977; Lou et al. 2020, Differentiating through the Frechet mean.
    """
    k = curvature_like(kappa, torch.float64, x)
    wide = x.double()
    share = weights.double()
    share = (share / share.sum(-1, keepdim=True)).unsqueeze(-1)
    mean = stereographic.midpoint(wide, share.squeeze(-1), k.squeeze(-1))
    for step in range(_STEPS):
        if step == _STEPS - _WITH_DERIVATIVES:
            mean = mean.detach()
        tangents = stereographic.logmap(mean.unsqueeze(-2), wide, k)
        hessian = _hessian(mean.detach(), tangents.detach(), share.detach(), k.detach())
        v = torch.linalg.solve(hessian, (share * tangents).sum(-2).unsqueeze(-1)).squeeze(-1)
        length = k.abs() * stereographic.inner(mean, v, v, k.squeeze(-1)).unsqueeze(-1)
        mean = stereographic.expmap(mean, v * length.clamp(min=1).rsqrt(), k.squeeze(-1))
    return mean.to(x.dtype)


def _hessian(mean: Tensor, tangents: Tensor, share: Tensor, k: Tensor) -> Tensor:
    """H `[..., dim, dim]` from the logarithms `[..., n, dim]` of the points at their mean."""
    square = squared_norm(tangents)
    factor = stereographic.conformal_factor(mean, k.squeeze(-1))[..., None, None]
    z = k.unsqueeze(-1) * factor.square() * square
    across = tan_ratio(z.clamp(max=2.4)).reciprocal()  # a quarter of a great circle is at 2.47
    along = share * (1 - across) / square.clamp(min=torch.finfo(torch.float32).tiny)
    unit = torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    return (share * across).sum(-2, keepdim=True) * unit + tangents.mT @ (along * tangents)


def frechet_variance(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Weighted mean of dist(m, x_j)^2 at the `frechet_mean` m, `[...]` of `[..., n, dim]`."""
    k = curvature_like(kappa, torch.float64, x)
    mean = frechet_mean(x.double(), weights, k.squeeze(-1)).unsqueeze(-2)
    squares = stereographic.sqdist(mean, x.double(), k)
    share = weights.double() / weights.double().sum(-1, keepdim=True)
    return (share * squares).sum(-1).to(x.dtype)


class WrappedNormal(Distribution):
    """Normal tangent vectors at the origin, transported to a mean and mapped to points.

    x = exp_m(v / lambda_m), v ~ N(0, diag(scale^2)), so that dist(m, x) = |v|. The density with
    respect to the space's volume is N(v; 0, diag(scale^2)) (|v| / sin_k(|v|))^(dim - 1); for
    kappa = 0 it is the normal distribution of 2 (x - m). On a sphere, `log_prob` counts only the
    shortest vector.

    Args:
        mean: point `[..., dim]`.
        scale: standard deviations `[..., dim]`, or one for all coordinates.
        kappa: signed curvature, broadcasting against the leading dimensions of the mean.

    Source: Nagano et al. 2019, A wrapped normal distribution on hyperbolic space; Mathieu et al.
    2019, Continuous hierarchical representations with Poincare variational auto-encoders.
    """

    arg_constraints: ClassVar = {}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, mean: Tensor, scale: Tensor | float, kappa: Tensor | float) -> None:
        k = curvature_like(kappa, mean.dtype, mean)
        scale = torch.as_tensor(scale, dtype=mean.dtype, device=mean.device)
        shape = torch.broadcast_shapes(mean.shape, scale.shape, (*k.shape[:-1], mean.shape[-1]))
        self.mean_point = mean
        self.scale = scale.expand(shape)
        self.kappa = k.squeeze(-1)
        super().__init__(shape[:-1], shape[-1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.mean_point

    def rsample(self, sample_shape: Size | Sequence[int] = ()) -> Tensor:
        """Points `[*sample_shape, ..., dim]`, differentiable by mean, scale and curvature."""
        shape = (*sample_shape, *self.batch_shape, *self.event_shape)
        noise = torch.randn(shape, dtype=self.scale.dtype, device=self.scale.device)
        v = stereographic.transport0(self.mean_point, noise * self.scale / 2, self.kappa)
        return stereographic.expmap(self.mean_point, v, self.kappa)

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density at points `[..., dim]`, `[...]`."""
        x = value.double()
        mean = self.mean_point.double()
        scale = self.scale.double()
        k = curvature_like(self.kappa, torch.float64, mean)
        log = stereographic.logmap(mean, x, k.squeeze(-1))
        v = 2 * stereographic.transport0_back(mean, log, k.squeeze(-1))
        ratio = sin_ratio(k * squared_norm(v)).clamp(min=torch.finfo(torch.float32).tiny)
        flat = Normal(torch.zeros_like(scale), scale, validate_args=False).log_prob(v).sum(-1)
        return (flat - (v.shape[-1] - 1) * ratio.log().squeeze(-1)).to(value.dtype)

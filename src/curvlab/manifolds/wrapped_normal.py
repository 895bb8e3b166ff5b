"""The wrapped normal distribution of stereographic points."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, Normal, constraints

from curvlab.manifolds import stereographic
from curvlab.manifolds.curved_trig import sin_ratio
from curvlab.manifolds.kernels import curvature_like, squared_norm


class WrappedNormal(Distribution):
    """Normal tangent vectors at the origin, transported to a mean and mapped to points.

    x = exp_m(v / lambda_m), v ~ N(0, diag(scale^2)), so that dist(m, x) = |v|. The density is by
    the space's own volume, N(v; 0, diag(scale^2)) (|v| / sin_k(|v|))^(dim - 1); for kappa = 0 it is
    the normal distribution of 2 (x - m). On a sphere `log_prob` counts the shortest vector alone.

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
        self.mean_point, self.scale, self.kappa = mean, scale.expand(shape), k.squeeze(-1)
        super().__init__(shape[:-1], shape[-1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """The point that the vectors are transported to."""
        return self.mean_point

    def rsample(self, sample_shape: Size | Sequence[int] = ()) -> Tensor:
        """Points `[*sample_shape, ..., dim]`, differentiable by mean, scale and curvature."""
        shape = (*sample_shape, *self.batch_shape, *self.event_shape)
        noise = torch.randn(shape, dtype=self.scale.dtype, device=self.scale.device)
        v = stereographic.transport0(self.mean_point, noise * self.scale / 2, self.kappa)
        return stereographic.expmap(self.mean_point, v, self.kappa)

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density at points `[..., dim]`, `[...]`."""
        x, mean, scale = value.double(), self.mean_point.double(), self.scale.double()
        k = curvature_like(self.kappa, torch.float64, mean)
        log = stereographic.logmap(mean, x, k.squeeze(-1))
        v = 2 * stereographic.transport0_back(mean, log, k.squeeze(-1))
        ratio = sin_ratio(k * squared_norm(v)).clamp(min=torch.finfo(torch.float32).tiny)
        flat = Normal(torch.zeros_like(scale), scale, validate_args=False).log_prob(v).sum(-1)
        return (flat - (v.shape[-1] - 1) * ratio.log().squeeze(-1)).to(value.dtype)

"""Frechet mean and variance of stereographic points."""

import torch
from torch import Tensor

from curvlab.manifolds import stereographic
from curvlab.manifolds.curved_trig import tan_ratio
from curvlab.manifolds.kernels import curvature_like, refusing_other_names, squared_norm

__all__ = ["frechet_mean", "frechet_variance"]

_STEPS = 20
"""Of Newton's method from the gyro-midpoint, at most 1 / sqrt|kappa| long each."""

_WITH_DERIVATIVES = 2
"""Last steps that are differentiated: one for first derivatives, two for second ones."""


def frechet_mean(x: Tensor, weights: Tensor, kappa: Tensor | float) -> Tensor:
    """Minimiser m of sum_j w_j dist(m, x_j)^2, `[..., dim]` of `[..., n, dim]` and `[..., n]`.

    By Newton's method, m <- exp_m(H^-1 sum_j w_j log_m(x_j)). The Hessian H has the factor 1 along
    log_m(x_j) and sqrt(kappa) d cot(sqrt(kappa) d) across. In float64; derivatives are those of the
    minimiser, not of the steps. Weights are not negative; on a sphere the points lie nearer to m
    than a quarter of a great circle. `kappa` broadcasts against the dimensions before n.

    Source: Karcher 1977; Lou et al. 2020, Differentiating through the Frechet mean.
    """
    k = curvature_like(kappa, torch.float64, x)
    wide, share = x.double(), weights.double()
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


for _name in __all__:
    globals()[_name] = refusing_other_names(globals()[_name])

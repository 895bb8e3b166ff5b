r"""Prototype regression on the Lorentz model (Hypformer's hyperbolic decoder)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab._geoopt import geoopt
from curvlab.manifolds import Lorentz, lorentz


class LorentzPrototypes(nn.Module):
    r"""Logits from squared Lorentzian distances to one learned point a class.

    `logit_c = -(|m - P_c|_L^2 + b_c) = 2 k + 2 <m, P_c>_L - b_c` with `k = -1 / kappa`: `-b_c`
    where m is the prototype, less everywhere else.

    The prototypes are `geoopt.ManifoldParameter`s, for a Riemannian optimiser; their time is
    recomputed where the curvature is learned. They start at distance 1 from the origin in random
    directions, the biases at 0.

    Shapes: `[..., 1 + dim] -> [..., logits]`.

    Args:
        dim: space-like coordinates of the points.
        logits: number of logits.
        space: where the points lie.

    Source: the code of Hypformer's authors; Law et al. 2019.
    """

    def __init__(self, dim: int, logits: int, space: Lorentz) -> None:
        super().__init__()
        self.space = space
        with torch.no_grad():
            points = space.expmap0(F.normalize(torch.randn(logits, dim), dim=-1))
        self.prototypes = geoopt.ManifoldParameter(points, manifold=space)
        self.bias = nn.Parameter(torch.zeros(logits))

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[..., 1 + dim]` to logits `[..., logits]`."""
        kappa = self.space.kappa
        prototypes = lorentz.project(self.prototypes, kappa)
        return F.linear(x, 2 * lorentz.reflect_time(prototypes), -2 / kappa - self.bias)

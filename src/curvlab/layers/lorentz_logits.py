r"""Prototype regression on the Lorentz model (Hypformer's hyperbolic decoder)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.layers.lorentz import Inner, inner_factor
from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Lorentz, lorentz
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.products import linear


class LorentzPrototypes(TakesManifold, nn.Module):
    r"""Logits from squared Lorentzian distances to one learned point a class.

    `logit_c = -(|m - P_c|_L^2 + b_c) = 2 k + 2 <m, P_c>_L - b_c` with `k = -1 / kappa`: `-b_c`
    where m is the prototype, less everywhere else. With `inner="as_released"` it is
    `2 k + 2 <m, P_c>_L / k - b_c`, a distance for k = 1 alone.

    The prototypes are `geoopt.ManifoldParameter`s, for a Riemannian optimiser; their time is
    recomputed where the curvature is learned. They start at distance 1 from the origin in random
    directions, the biases at 0.

    Shapes: `[..., 1 + dim] -> [..., logits]`.

    Args:
        dim: space-like coordinates of the points.
        logits: number of logits.
        manifold: where the points lie.
        inner: None, or `as_released` for the product of Hypformer's code, which is divided by k.

    Raises:
        UsageError: there is no such product.

    Source: Hypformer's decoder `hyp`; Law et al. 2019. Its code divides since its second release.
    """

    def __init__(
        self, dim: int, logits: int, manifold: Lorentz, inner: Inner | None = None
    ) -> None:
        super().__init__()
        self.space, self.inner = manifold, inner
        with torch.no_grad():
            points = manifold.expmap0(F.normalize(torch.randn(logits, dim), dim=-1))
        self.prototypes = geoopt.ManifoldParameter(points, manifold=manifold)
        self.bias = nn.Parameter(torch.zeros(logits))

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[..., 1 + dim]` to logits `[..., logits]`."""
        kappa = self.space.kappa
        prototypes = lorentz.project(self.prototypes, kappa)
        doubled = 2 * inner_factor(self.space, self.inner)
        return linear(x, doubled * lorentz.reflect_time(prototypes), -2 / kappa - self.bias)

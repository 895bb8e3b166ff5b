"""The pseudo-hyperboloid as a space."""

import torch
from torch import Tensor

from curvlab.manifolds import pseudo_hyperboloid as pseudo
from curvlab.manifolds.base import Manifold, by_function, root_of_sqdist
from curvlab.manifolds.curvature import Curvature, not_positive
from curvlab.manifolds.pairs.form import PairForm, PseudoProfile, form_features
from curvlab.options import Learnable, NegativeFloat, PositiveInt


class PseudoHyperboloid(Manifold):
    """Pseudo-hyperboloid of signed curvature kappa < 0; points are `[..., dim]`, times first.

    Tangent vectors at the origin are `[..., dim - 1]`. It has no metric in the sense of a distance:
    different points that light joins are at distance 0.

    Args:
        time_dims: axes of time, 1 (the Lorentz model) to `dim` (a sphere).
        kappa: initial curvature.
        learnable: whether the curvature is a parameter.
        min: open lower bound of the curvature, None for none.
        max: open upper bound of the curvature, at most 0.

    Raises:
        UsageError: the curvature is not between its bounds.

    Source: Xiong et al. 2022; see `curvlab.manifolds.pseudo_hyperboloid`.
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

    expmap0 = by_function(pseudo.expmap0, "time_dims")
    logmap0 = by_function(pseudo.logmap0, "time_dims")
    sqdist = by_function(pseudo.sqdist, "time_dims")
    pairwise_sqdist = by_function(pseudo.pairwise_sqdist, "time_dims")
    dist = root_of_sqdist
    expmap = by_function(pseudo.expmap, "time_dims")
    logmap = by_function(pseudo.logmap, "time_dims")

    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        return self.expmap(self.expmap0(u), v)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Exponential at x of the logarithm of y, transported from the origin to x."""
        return self.expmap(x, self.logmap0(y))

    def pair_form(self, x: Tensor) -> PairForm:
        """`m = -|x' - y'|^2` with the product's signs, where `x' = sqrt(-kappa) x / 2`."""
        kappa = self.kappa
        scaled = ((-kappa).sqrt() / 2 * x).unsqueeze(1)
        time, rest = scaled.split([self.time_dims, x.shape[1] - self.time_dims], dim=-1)
        signed = torch.cat([time, -rest], dim=-1)  # -<x, y> = signed x . y
        norms = (signed * scaled).sum(-1, keepdim=True)
        sides = form_features(signed, scaled, norms, torch.ones_like(norms))
        return PairForm(*sides, kappa.reshape(1), profile=PseudoProfile)

    def extra_repr(self) -> str:
        return f"time_dims={self.time_dims}"

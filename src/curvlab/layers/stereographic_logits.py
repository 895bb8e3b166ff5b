r"""Multinomial regression on products of constant-curvature spaces (FPS-T, Section 3.4, Eq. 4)."""

from typing import Literal

import torch
from torch import Tensor, nn

from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Euclidean, Stereographic, kernels, stereographic
from curvlab.manifolds.products import product

_SMALLEST_SQUARE = 1e-15

LogitCurvature = Literal["geometric", "paper"]


class StereographicLogits(TakesManifold, nn.Module):
    r"""Logits from signed distances to one hyperplane a class.

    Class `c` has an offset `P = exp_0(p)` and a normal `A`, the transport of `a` from the origin to
    `P`. With `z = (-P) (+) x`, in every component

        u = 2 <z, A> / ((1 + kappa |z|^2) |A|),    D = arsin_kappa(u),

    and `logit = |2 a| sqrt(sum_h D_h^2) sign(sum_h <z_h, A_h>)`. With `s = x - P`,
    `alpha = 1 + kappa |P|^2`, `beta = 1 + kappa |x|^2`,

        u = 2 (alpha <s, a> + kappa |s|^2 <P, a>) / (alpha beta |a|),

    so that two matrix products with the classes suffice: no tensor `[nodes, classes, dim]` is made.
    On one flat component the logit is `4 <x - p, a>`; on several it is not linear.

    Shapes: `[nodes, dim] -> [nodes, classes]`.

    Args:
        dim: width of the points.
        classes: number of classes.
        manifold: where the points lie.
        curvature: of `arsin`: `geometric` is the space's kappa, which makes D the distance;
            `paper` is `kappa |kappa|`, as FPS-T's Eq. 4 and its authors' code have it; beyond
            kappa = 1 its argument can leave the domain and is then held at the boundary.

    Source: FPS-T, Eq. 4 and its product form; Ganea et al. 2018.
    """

    def __init__(
        self,
        dim: int,
        classes: int,
        manifold: Euclidean | Stereographic,
        curvature: LogitCurvature = "geometric",
    ) -> None:
        super().__init__()
        self.space = manifold
        self.curvature = curvature
        self.normal = nn.Parameter(0.01 * torch.randn(classes, dim))
        self.offset = nn.Parameter(torch.zeros(classes, dim))

    def forward(self, x: Tensor) -> Tensor:
        """Map points `[nodes, dim]` to logits `[nodes, classes]`."""
        kappa = self._kappa(x)
        point, offset, normal = (
            self.space.split(part).movedim(-2, 0)
            for part in (x, self.space.expmap0(self.offset), self.normal)
        )
        alpha = kernels.conformal_denominator(offset, kappa).mT  # [components, 1, classes]
        beta = kernels.conformal_denominator(point, kappa)  # [components, nodes, 1]
        along = (offset * normal).sum(-1).unsqueeze(-2)  # <P, a>
        shift = product(point, normal.mT) - along  # <s, a>
        squared = _squared_distances(point, offset)  # |s|^2
        length = normal.square().sum(-1).clamp_min(_SMALLEST_SQUARE).sqrt().unsqueeze(-2)
        numerator = alpha * shift + kappa * squared * along
        angle = self._arsin(2 * numerator / (alpha * beta * length), kappa)
        side = (alpha * numerator / (alpha * beta - kappa * squared)).sum(0).sign()
        distance = angle.square().sum(0).clamp_min(_SMALLEST_SQUARE).sqrt()
        return 2 * length.square().sum(0).sqrt() * distance * side

    def _kappa(self, x: Tensor) -> Tensor:
        """Curvatures `[components, 1, 1]`, 0 on flat space."""
        kappa = self.space.kappa
        if kappa is None:
            return x.new_zeros(self.space.components, 1, 1)
        return kappa.to(x.dtype)[:, None, None]

    def _arsin(self, u: Tensor, kappa: Tensor) -> Tensor:
        return stereographic.arsin_k(u, kappa * kappa.abs() if self.curvature == "paper" else kappa)


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """`|x_i - y_j|^2`, `[..., n, m]`, through a matrix product."""
    norms = x.square().sum(-1).unsqueeze(-1) + y.square().sum(-1).unsqueeze(-2)
    return (norms - 2 * product(x, y.mT)).clamp_min(0)

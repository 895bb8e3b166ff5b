"""Features of points whose products are the forms that distances are functions of."""

from typing import NamedTuple

import torch
from torch import Tensor

from curvlab.manifolds.pairs.profiles import CurvedProfile, PseudoProfile


class PairForm(NamedTuple):
    """A bilinear form of two points, and the function of it that their squared distance is.

    Attributes:
        left: features of the first point, `[components, features, nodes]`.
        right: those of the second, whose products with the first are the form.
        kappa: curvatures `[components]`; None where the squared distance is `scale` times the form.
        scale: see `kappa`.
        profile: the squared distance where it is curved.
    """

    left: Tensor
    right: Tensor
    kappa: Tensor | None
    scale: float = 1.0
    profile: type[CurvedProfile | PseudoProfile] = CurvedProfile


def form_features(x: Tensor, y: Tensor, norms: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """`[norms, weight, -2 x]` and `[weight, norms, y]`, as `[components, 2 + block, nodes]`.

    Args:
        x: blocks of the first point, `[nodes, components, block]`.
        y: blocks of the second.
        norms: `[nodes, components, 1]`, like `weight`.
        weight: see above.
    """
    left = torch.cat([norms, weight, -2 * x], dim=-1)
    right = torch.cat([weight, norms, y], dim=-1)
    return left.permute(1, 2, 0).contiguous(), right.permute(1, 2, 0).contiguous()


def weighted_form(
    blocks: Tensor, weight: Tensor, kappa: Tensor | None, scale: float = 1.0
) -> PairForm:
    """The form `w_x w_y |x - y|^2` of blocks `[nodes, components, block]` and their weights w."""
    weighted = weight * blocks
    norms = (weighted * blocks).sum(-1, keepdim=True)
    return PairForm(*form_features(weighted, weighted, norms, weight), kappa, scale)

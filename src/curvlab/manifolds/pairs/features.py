"""Features of points whose products are the forms that distances are functions of."""

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds import (
    EmbeddingSpace,
    Euclidean,
    Lorentz,
    PseudoHyperboloid,
    Stereographic,
    lorentz,
)


def bilinear_features(
    x: Tensor, space: EmbeddingSpace
) -> tuple[Tensor, Tensor, Tensor | None, float]:
    """Features whose products are the form `u^2`, the curvatures, and `D / u^2` where it is flat.

    Flat: `|x - y|^2 = [|x|^2, 1, -2x] . [1, |y|^2, y]`; stereographic: each side divided by its
    `1 + kappa |.|^2`, of a Lorentz point's stereographic image `2 / (1 + sqrt(1 - kappa |s|^2))`,
    which nothing cancels in. Pseudo-hyperboloid: `m = -|x' - y'|^2` with the product's signs, where
    `x' = sqrt(-kappa) x / 2`. Both are `[components, dim + 2, nodes]`.
    """
    if isinstance(space, PseudoHyperboloid):
        return _pseudo_features(x, space)
    if isinstance(space, Stereographic):
        blocks, kappa, scale = space.split(x), space.kappa, 1.0
        weight = 1 / (1 + kappa[:, None] * blocks.square().sum(-1, keepdim=True))
    elif isinstance(space, Euclidean):
        blocks, kappa, scale = x.unsqueeze(1), None, space.scale**2
        weight = torch.ones_like(blocks[..., :1])
    elif isinstance(space, Lorentz):
        kappa, scale, s = space.kappa.reshape(1), 1.0, lorentz.space(x).unsqueeze(1)
        weight = (1 + (1 - kappa * s.square().sum(-1, keepdim=True)).sqrt()) / 2
        blocks = s / (2 * weight)
    else:
        raise UsageError(
            f"reconstruction has no distance for {type(space).__name__}; it has for Stereographic, "
            "Lorentz, PseudoHyperboloid and Euclidean"
        )
    weighted = weight * blocks
    norms = (weighted * blocks).sum(-1, keepdim=True)
    left = torch.cat([norms, weight, -2 * weighted], dim=-1)
    right = torch.cat([weight, norms, weighted], dim=-1)
    left, right = (side.permute(1, 2, 0).contiguous() for side in (left, right))
    return left, right, kappa, scale


def _pseudo_features(x: Tensor, space: PseudoHyperboloid) -> tuple[Tensor, Tensor, Tensor, float]:
    """What `bilinear_features` returns on the pseudo-hyperboloid."""
    kappa = space.kappa
    scaled = (-kappa).sqrt() / 2 * x
    time, rest = scaled.split([space.time_dims, x.shape[1] - space.time_dims], dim=1)
    signed = torch.cat([time, -rest], dim=1)  # -<x, y> = signed x . y
    norms = (signed * scaled).sum(-1, keepdim=True)
    ones = torch.ones_like(norms)
    left = torch.cat([norms, ones, -2 * signed], dim=1)
    right = torch.cat([ones, norms, scaled], dim=1)
    left, right = (side.T.contiguous().unsqueeze(0) for side in (left, right))
    return left, right, kappa.reshape(1), 1.0

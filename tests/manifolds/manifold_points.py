"""Points at chosen distances from the origin, as the dtype represents them."""

import math

import torch
from manifold_reference import dot, exact, expmap0, mpf
from torch.nn import functional


def points_at(kappa: float, radii: list[float], dtype: torch.dtype, dim: int = 4) -> torch.Tensor:
    """Points at `radii` / sqrt|kappa| from the origin, those that the dtype can represent."""
    generator = torch.Generator().manual_seed(0)
    unit = 1 / math.sqrt(abs(kappa)) if kappa else 1.0
    points = []
    for radius in radii:
        direction = torch.randn(dim, generator=generator, dtype=torch.float64)
        v = exact(functional.normalize(direction, dim=0) * radius * unit / 2)
        x = torch.tensor([float(c) for c in expmap0(v, mpf(kappa))]).to(dtype)
        if 1 + mpf(kappa) * dot(exact(x), exact(x)) > 0:
            points.append(x)
    return torch.stack(points)

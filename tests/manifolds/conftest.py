"""Points and curvatures that the geometry is tested on."""

import math

import pytest
import torch
from manifold_reference import dot, exact, expmap0, mpf
from torch.nn import functional

CURVATURES = [0.0] + [sign * 10.0**e for e in (-8, -5, -3, -1, 0, 2) for sign in (1, -1)]


@pytest.fixture(scope="module", params=CURVATURES, ids=lambda k: f"kappa={k:g}")
def kappa(request) -> float:
    return request.param


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param


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

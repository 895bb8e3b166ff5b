"""Curvatures and number types that the geometry is tested on."""

import pytest
import torch

CURVATURES = [0.0] + [sign * 10.0**e for e in (-8, -5, -3, -1, 0, 2) for sign in (1, -1)]


@pytest.fixture(scope="module", params=CURVATURES, ids=lambda k: f"kappa={k:g}")
def kappa(request) -> float:
    return request.param


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param

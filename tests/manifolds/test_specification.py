"""The numbers of the FPS-T specification that concern the stereographic model."""

import pytest
import torch

from curvlab.manifolds import curved_trig, stereographic

FLOAT = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


X, Y, V = tensor(0.1, 0.2), tensor(-0.3, 0.4), tensor(0.5, -0.25)

POINTS = {
    -1: {
        "x_plus_y": (-0.134831, 0.584270),
        "y_plus_x": (-0.242697, 0.548315),
        "dist": 1.01543426,
        "factor": 2.10526316,
        "expmap0": (0.453696, -0.226848),
        "logmap0": (0.101719, 0.203437),
        "half": (-0.160770, 0.214359),
        "back": (0.526316, -0.263158),
        "expmap": (0.569302, 0.030839),
        "logmap": (-0.451621, 0.169358),
        "transport": (0.344989, -0.275234),
    },
    0: {
        "x_plus_y": (-0.2, 0.6),
        "y_plus_x": (-0.2, 0.6),
        "dist": 0.89442719,
        "factor": 2,
        "expmap0": (0.5, -0.25),
        "logmap0": (0.1, 0.2),
        "half": (-0.15, 0.2),
        "back": (0.5, -0.25),
        "expmap": (0.6, -0.05),
        "logmap": (-0.4, 0.2),
        "transport": (0.5, -0.25),
    },
    1: {
        "x_plus_y": (-0.273973, 0.602740),
        "y_plus_x": (-0.142466, 0.646575),
        "dist": 0.80204523,
        "factor": 1.90476190,
        "expmap0": (0.559537, -0.279768),
        "logmap0": (0.098382, 0.196763),
        "half": (-0.141641, 0.188854),
        "back": (0.476190, -0.238095),
        "expmap": (0.608031, -0.143572),
        "logmap": (-0.357070, 0.223169),
        "transport": (0.640717, -0.179909),
    },
}


@pytest.mark.parametrize("kappa", POINTS)
def test_points(kappa):
    s = stereographic
    computed = {
        "x_plus_y": s.mobius_add(X, Y, kappa),
        "y_plus_x": s.mobius_add(Y, X, kappa),
        "dist": s.dist(X, Y, kappa),
        "factor": s.conformal_factor(X, kappa),
        "expmap0": s.expmap0(V, kappa),
        "logmap0": s.logmap0(X, kappa),
        "half": s.mobius_scalar_mul(0.5, Y, kappa),
        "back": s.transport0_back(X, V, kappa),
        "expmap": s.expmap(X, V, kappa),
        "logmap": s.logmap(X, Y, kappa),
        "transport": s.transport(X, Y, V, kappa),
    }
    for name, expected in POINTS[kappa].items():
        assert computed[name].tolist() == pytest.approx(expected, abs=1e-6), name


@pytest.mark.parametrize(
    ("kappa", "dtype", "expected"),
    [
        (-1, torch.float32, 0.996),
        (-1, torch.float64, 0.99999),
        (-4, torch.float64, 0.499995),
        (1, torch.float64, 2.0),
    ],
)
def test_projection(kappa, dtype, expected):
    projected = stereographic.project(torch.tensor([2.0, 0.0], dtype=dtype), kappa)
    assert projected.tolist() == pytest.approx([expected, 0], abs=1e-7)


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [(-1, (0.17449115, 0.18407857)), (0, (0.15, 0.225)), (1, (0.13594604, 0.25443111))],
)
def test_weighted_midpoint(kappa, expected):
    x, weights = torch.stack([tensor(0.6, 0.0), tensor(0.0, 0.3)]), tensor(1, 3)
    midpoint = stereographic.midpoint(x, weights, kappa)
    assert midpoint.tolist() == pytest.approx(expected, abs=1e-8)
    scaled = stereographic.midpoint(x, 7 * weights, kappa)
    assert scaled.tolist() == pytest.approx(expected, abs=1e-8)


SCALARS = {  # kappa: (x, tan_k, artan_k, arsin_k, sin_k)
    -4: (0.4, 0.33201839, 0.54930614, 0.36633413, 0.44405299),
    -1: (0.5, 0.46211716, 0.54930614, 0.48121183, 0.52109531),
    -0.1: (0.5, 0.49587458, 0.50423030, 0.49793976, 0.50208594),
    -1e-4: (0.5, 0.49999583, 0.50000417, 0.49999792, 0.50000208),
    0: (0.5, 0.5, 0.5, 0.5, 0.5),
    1e-4: (0.5, 0.50000417, 0.49999583, 0.50000208, 0.49999792),
    0.1: (0.5, 0.50420876, 0.49589474, 0.50210713, 0.49791927),
    1: (0.5, 0.54630249, 0.46364761, 0.52359878, 0.47942554),
    4: (0.5, 0.77870386, 0.39269908, 0.78539816, 0.42073549),
}
FAMILY = (
    curved_trig.tan_k,
    curved_trig.artan_k,
    curved_trig.arsin_k,
    curved_trig.sin_k,
)


SLOPES = {
    0.0: (0.04166667, -0.04166667, 0.02083333, -0.02083333),
    1e-3: (0.04167500, -0.04165417, 0.02083802, -0.02083281),
    -1e-3: (0.04165833, -0.04167917, 0.02082865, -0.02083385),
}


@pytest.mark.parametrize("kappa", SCALARS)
def test_scalar_functions(kappa):
    x, *expected = SCALARS[kappa]
    for function, value in zip(FAMILY, expected, strict=True):
        assert function(tensor(x), kappa).item() == pytest.approx(value, abs=6e-9)


@pytest.mark.parametrize("kappa", SLOPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_scalar_derivatives_with_respect_to_kappa(kappa, dtype, tolerance):
    for function, slope in zip(FAMILY, SLOPES[kappa], strict=True):
        k = torch.tensor(kappa, dtype=dtype, requires_grad=True)
        function(torch.tensor(0.5, dtype=dtype), k).backward()
        assert k.grad.item() == pytest.approx(slope, rel=tolerance)

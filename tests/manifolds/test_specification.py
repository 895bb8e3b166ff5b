"""The numbers of the FPS-T specification that concern the stereographic model."""

import pytest
import torch

from curvlab.manifolds import Stereographic, stereographic

FLOAT = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


X, Y, V = tensor(0.1, 0.2), tensor(-0.3, 0.4), tensor(0.5, -0.25)

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
    stereographic.tan_k,
    stereographic.artan_k,
    stereographic.arsin_k,
    stereographic.sin_k,
)


@pytest.mark.parametrize("kappa", SCALARS)
def test_scalar_functions(kappa):
    x, *expected = SCALARS[kappa]
    for function, value in zip(FAMILY, expected, strict=True):
        assert function(tensor(x), kappa).item() == pytest.approx(value, abs=6e-9)


SLOPES = {
    0.0: (0.04166667, -0.04166667, 0.02083333, -0.02083333),
    1e-3: (0.04167500, -0.04165417, 0.02083802, -0.02083281),
    -1e-3: (0.04165833, -0.04167917, 0.02082865, -0.02083385),
}


@pytest.mark.parametrize("kappa", SLOPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
def test_scalar_derivatives_with_respect_to_kappa(kappa, dtype, tolerance):
    for function, slope in zip(FAMILY, SLOPES[kappa], strict=True):
        k = torch.tensor(kappa, dtype=dtype, requires_grad=True)
        function(torch.tensor(0.5, dtype=dtype), k).backward()
        assert k.grad.item() == pytest.approx(slope, rel=tolerance)


def test_derivative_for_a_vector_of_curvatures():
    kappa = tensor(0.0, -1.0).requires_grad_()
    stereographic.tan_k(tensor(0.5, 0.5), kappa).sum().backward()
    assert kappa.grad.tolist() == pytest.approx([0.04166667, 0.03444665], abs=6e-9)


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


def test_product_distance():
    space = Stereographic(components=2, learnable=False)
    space.curvature.raw.copy_(torch.tensor([-1.0, 0.5]))
    x, y = tensor(0.1, 0.2, 0.3, -0.1), tensor(-0.3, 0.4, 0.2, 0.5)
    parts = stereographic.dist(space.split(x), space.split(y), space.kappa)
    assert parts.tolist() == pytest.approx([1.01543426, 1.14014295], abs=1e-8)
    assert space.dist(x, y).item() == pytest.approx(1.52677198, abs=1e-8)


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


@pytest.mark.parametrize(
    ("kappa", "point", "expected"),
    [(-1, 0.6, 0.6), (0, 0.6, 0.6), (1, 0.6, 0.6), (1, 2.0, -0.5)],
)
def test_midpoint_of_one_point(kappa, point, expected):
    """One point is its own midpoint; as printed, beyond the equator its antipode is."""
    x = tensor(point, 0.0)
    midpoint = stereographic.midpoint(x.unsqueeze(0), tensor(2.5), kappa)
    assert midpoint.tolist() == pytest.approx([point, 0], abs=1e-12)
    factor = stereographic.conformal_factor(x, kappa)
    printed = stereographic.midpoint_from_sums(factor * x, factor - 1, kappa, printed=True)
    assert printed.tolist() == pytest.approx([expected, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("kappa", "d01", "d23"),
    [
        (-1, 0.622329, 2.290721),
        (0, 0.602993, 1.141577),
        (1, 0.585658, 0.765801),
    ],
)
def test_pairwise_distances_of_the_reconstruction_example(kappa, d01, d23):
    points = [[0, 0], [1, 0.1], [0.2, 1.9], [2.1, 2.0], [0.6, 1.1]]
    x = 0.3 * torch.tensor(points, dtype=FLOAT)
    distances = stereographic.pairwise_dist(x, x, kappa)
    assert distances[0, 1].item() == pytest.approx(d01, abs=1e-6)
    assert distances[2, 3].item() == pytest.approx(d23, abs=1e-6)


ATTENTION = {
    -1: [(0.205556, -0.180610), (0.205709, -0.178750), (0.206629, -0.167962)],
    -0.25: [(0.151708, -0.098716), (0.152230, -0.095946), (0.154064, -0.086244)],
    0: [(0.142143, -0.078647), (0.142762, -0.075637), (0.144679, -0.066326)],
    0.25: [(0.135098, -0.060406), (0.135800, -0.057183), (0.137743, -0.048250)],
    1: [(0.124737, -0.011163), (0.125578, -0.007474), (0.127350, 0.000342)],
}


@pytest.mark.parametrize("kappa", ATTENTION)
def test_attention_example_through_transports_and_midpoint(kappa):
    value = torch.stack([tensor(0.1, 0.2), tensor(-0.4, 0.3), tensor(0.5, -0.5)])
    query = torch.stack([tensor(0.2, -0.1), tensor(0.4, 0.3), tensor(-0.5, 0.1)])
    key = torch.stack([tensor(-0.3, 0.6), tensor(0.1, -0.2), tensor(0.7, 0.5)])
    feature = torch.nn.functional.elu
    query = feature(stereographic.transport0_back(value, query, kappa)) + 1
    key = feature(stereographic.transport0_back(value, key, kappa)) + 1
    output = stereographic.midpoint(value, query @ key.T, kappa)
    assert output.tolist() == [pytest.approx(row, abs=1e-6) for row in ATTENTION[kappa]]

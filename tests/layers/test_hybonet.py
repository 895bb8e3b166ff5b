"""HyboNet's layers: the specification's numbers, the constraint, neighbourhoods, dropout."""

import pytest
import torch

from curvlab.layers import CentroidAggregation, HyboNetFeatureLinear, HyboNetLinear
from curvlab.manifolds import Lorentz, lorentz
from drawn import draw, filled

pytestmark = pytest.mark.usefixtures("float64")

KAPPAS = (-0.3, -1.0, -2.0)
PLAIN = {"time_offset": 0.5, "max_scale": None}


def linear(space, n_in=3, n_out=4, dropout=0.0, activation=None, **options):
    return HyboNetLinear(n_in, n_out, space, dropout, activation, **{**PLAIN, **options})


def sparse(rows):
    return torch.tensor(rows).to_sparse_csr()


def points(kappa, *shape):
    return lorentz.expmap0(draw(*shape), kappa)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_every_layer_stays_on_the_hyperboloid(kappa):
    space, x = Lorentz(kappa), points(kappa, 30, 3)
    adjacency = sparse((torch.rand(30, 30) < 0.1).double().tolist())
    for point in (
        linear(space)(x),
        linear(space, activation="relu", dropout=0.4)(x),
        HyboNetFeatureLinear(3, 4, space, 0.3, None, **PLAIN)(100 * torch.randn(30, 3)),
        CentroidAggregation(space)(adjacency, x),
    ):
        torch.testing.assert_close(lorentz.inner(point, point), torch.full((30,), 1 / kappa))
        assert (point[:, 0] > 0).all()


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 200.0])
@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
def test_the_first_layer_is_the_linear_map_of_lifted_features(kappa, size, activation):
    """Rows are cut where they are longer than ten radii of curvature; rows of zeros lift to o."""
    space = Lorentz(kappa)
    features = HyboNetFeatureLinear(6, 4, space, 0.0, activation, **PLAIN)
    plain = linear(space, 6, 4, activation=activation)
    filled(plain)
    features.load_state_dict(plain.state_dict(), strict=False)
    x = size * torch.randn(20, 6)
    x[0] = 0
    length = x.norm(dim=-1, keepdim=True).clamp(min=1e-300)
    lifted = lorentz.expmap0(x * (10 * (-kappa) ** -0.5 / length).clamp(max=1), kappa)
    torch.testing.assert_close(features(x), plain(lifted), rtol=1e-7, atol=1e-9)


def test_aggregation_is_the_centroid_of_the_neighbours_whatever_the_scale_of_a_row():
    kappa = -0.7
    space, x = Lorentz(kappa), points(kappa, 5, 3)
    rows = [[1.0, 2, 0, 0, 3], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 5, 5]]
    layer = CentroidAggregation(space)
    found = layer(sparse(rows), x)
    for i in (0, 1, 3, 4):
        expected = lorentz.centroid(x, torch.tensor(rows[i]), kappa)
        torch.testing.assert_close(found[i], expected)
    torch.testing.assert_close(found[2], x[2])  # without neighbours
    scaled = [[value * (i + 0.1) for value in row] for i, row in enumerate(rows)]
    torch.testing.assert_close(layer(sparse(scaled), x), found)


@pytest.mark.parametrize("kappa", KAPPAS)
def test_time_is_bounded_and_starts_in_the_middle(kappa):
    space, radius = Lorentz(kappa), (-kappa) ** -0.5
    layer = linear(space)
    assert (layer.weight[:, 0] == 0).all()
    assert (layer.bias == 0).all()
    assert layer.weight.abs().max() <= 5**-0.5
    x = points(kappa, 3)
    near = layer(x)
    assert near[0].item() != pytest.approx(5 + radius + 0.5)
    with torch.no_grad():
        layer.weight[0] = 0
    assert layer(x)[0].item() == pytest.approx(5 + radius + 0.5)
    with torch.no_grad():
        layer.bias[0] = 1e3
    assert layer(x)[0].item() == pytest.approx(10 + radius + 0.5)
    with torch.no_grad():
        layer.point.log_scale.fill_(5.0)
    assert layer(x)[0].item() == pytest.approx(torch.tensor(5.0).exp() + radius + 0.5)
    layer.point.max_scale = 10.0
    assert layer(x)[0].item() == pytest.approx(10 + radius + 0.5)

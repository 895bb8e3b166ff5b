"""The decoder of node classification follows the geometry."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.layers.lorentz import LorentzPrototypes
from curvlab.layers.stereographic import StereographicLogits
from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.tasks.decoders import TangentLogits, make_node_decoder
from placed import Placed

pytestmark = pytest.mark.usefixtures("float64")


def decoder(kind, space, dim, *options):
    return make_node_decoder(Placed(torch.zeros(1, dim), space), kind, 3, *options)


def test_by_itself_it_is_what_the_space_asks_for():
    curved = decoder("auto", Stereographic(2, -1.0), 4, "paper")
    assert isinstance(curved, StereographicLogits)
    assert curved.curvature == "paper"
    flat = decoder("auto", Euclidean(2), 4)
    assert isinstance(flat, TangentLogits)
    x = torch.randn(5, 4)
    torch.testing.assert_close(flat(x), x @ flat.weight.T + flat.bias)


def test_on_the_lorentz_model_it_is_prototypes_of_the_points():
    space = Lorentz(-0.5)
    made = decoder("auto", space, 5)
    assert isinstance(made, LorentzPrototypes)
    assert made.prototypes.shape == (3, 5)
    logits = made(made.prototypes)
    torch.testing.assert_close(logits.diagonal(), torch.zeros(3), atol=1e-12, rtol=0)
    assert (logits.argmax(1) == torch.arange(3)).all()
    assert decoder("auto", space, 5, "geometric", "as_released").inner == "as_released"


@pytest.mark.parametrize(("space", "dim"), [(Stereographic(2, -1.0), 4), (Lorentz(-0.5), 5)])
def test_linear_on_a_curved_space_is_of_the_logarithms(space, dim):
    made = decoder("linear", space.double(), dim)
    x = space.expmap0(torch.randn(5, 4))
    torch.testing.assert_close(made(x), space.logmap0(x) @ made.weight.T + made.bias)


@pytest.mark.parametrize(
    ("kind", "space", "options", "says"),
    [
        ("softmax", Euclidean(), (), r"'softmax': there is none on Euclidean space"),
        ("auto", Euclidean(), ("geometric", "as_released"), r"leave it None with decoder='linear'"),
        ("auto", Stereographic(), ("printed",), "'printed'"),
        ("prototype", Euclidean(), (), r"'prototype': there is none on Euclidean.*'auto'"),
        ("stereographic", Lorentz(), (), r"none on Lorentz space, which has prototype, linear"),
    ],
)
def test_what_there_is_not_is_refused(kind, space, options, says):
    with pytest.raises(UsageError, match=says):
        decoder(kind, space, 4, *options)


def test_no_decoder_follows_logits():
    made = Placed(torch.zeros(1, 3), Euclidean(), logits=True)
    assert isinstance(make_node_decoder(made, "auto", 3), torch.nn.Identity)
    for given in (("linear", 3), ("auto", 3, "geometric", "as_released")):
        with pytest.raises(UsageError, match=r"makes the logits itself; leave decoder='auto'"):
            make_node_decoder(made, *given)

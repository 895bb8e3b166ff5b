"""The decoder of node classification follows the geometry."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.layers.lorentz_logits import LorentzPrototypes
from curvlab.layers.stereographic_logits import StereographicLogits
from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.models.encoder import Encoder
from curvlab.tasks.decoders import TangentLogits, decoder_of, logits_decoder

pytestmark = pytest.mark.usefixtures("float64")


def test_by_itself_it_is_what_the_space_asks_for():
    curved = logits_decoder("auto", Stereographic(2, -1.0), 4, 3, "paper")
    assert isinstance(curved, StereographicLogits)
    assert curved.curvature == "paper"
    flat = logits_decoder("auto", Euclidean(2), 4, 3, "geometric")
    assert isinstance(flat, TangentLogits)
    x = torch.randn(5, 4)
    torch.testing.assert_close(flat(x), x @ flat.weight.T + flat.bias)


def test_on_the_lorentz_model_it_is_prototypes_of_the_points():
    space = Lorentz(-0.5)
    made = logits_decoder("auto", space, 5, 3, "geometric")
    assert isinstance(made, LorentzPrototypes)
    assert made.prototypes.shape == (3, 5)
    logits = made(made.prototypes)
    torch.testing.assert_close(logits.diagonal(), torch.zeros(3), atol=1e-12, rtol=0)
    assert (logits.argmax(1) == torch.arange(3)).all()
    released = logits_decoder("auto", space, 5, 3, "geometric", "as_released")
    released.load_state_dict(made.state_dict())
    product = (logits - 4) / 2  # <m, P>, of k = 2
    torch.testing.assert_close(released(made.prototypes), 4 + 2 * product / 2)
    linear = logits_decoder("linear", space, 5, 3, "geometric")
    x = space.expmap0(torch.randn(6, 4))
    torch.testing.assert_close(linear(x), space.logmap0(x) @ linear.weight.T + linear.bias)


def test_linear_on_a_curved_space_is_of_the_logarithms():
    space = Stereographic(2, -1.0)
    made = logits_decoder("linear", space, 4, 3, "geometric")
    x = space.expmap0(torch.randn(5, 4))
    torch.testing.assert_close(made(x), space.logmap0(x) @ made.weight.T + made.bias)


def test_what_there_is_not_is_refused():
    with pytest.raises(UsageError, match=r"auto, stereographic, prototype or linear.*'softmax'"):
        logits_decoder("softmax", Euclidean(), 4, 3, "geometric")
    with pytest.raises(
        UsageError, match=r"inner='as_released' .* leave it None with decoder='linear'"
    ):
        logits_decoder("auto", Euclidean(), 4, 3, "geometric", inner="as_released")
    with pytest.raises(UsageError, match="'printed'"):
        logits_decoder("auto", Stereographic(), 4, 3, "printed")
    with pytest.raises(UsageError, match=r"prototypes.*Lorentz model.*Euclidean.*decoder='auto'"):
        logits_decoder("prototype", Euclidean(), 4, 3, "geometric")
    with pytest.raises(UsageError, match=r"Lorentz space.*decoder='linear'"):
        logits_decoder("stereographic", Lorentz(), 5, 3, "geometric")


class MakesLogits(Encoder):
    """An encoder whose embeddings are the logits."""

    manifold_out = Euclidean()
    dim_out = 3
    gives_logits = True

    def forward(self, batch):
        return batch.x


def test_no_decoder_follows_logits():
    assert isinstance(decoder_of(MakesLogits(), "auto", 3, "geometric"), torch.nn.Identity)
    with pytest.raises(UsageError, match=r"leave decoder='auto'"):
        decoder_of(MakesLogits(), "linear", 3, "geometric")
    with pytest.raises(UsageError, match=r"inner='as_released' .* makes the logits itself"):
        decoder_of(MakesLogits(), "auto", 3, "geometric", "as_released")

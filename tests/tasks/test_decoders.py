"""The decoder of node classification follows the geometry."""

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.layers.stereographic_logits import StereographicLogits
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.tasks.decoders import TangentLogits, logits_decoder

pytestmark = pytest.mark.usefixtures("float64")


def test_by_itself_it_is_what_the_space_asks_for():
    curved = logits_decoder("auto", Stereographic(2, -1.0), 4, 3, "paper")
    assert isinstance(curved, StereographicLogits)
    assert curved.curvature == "paper"
    flat = logits_decoder("auto", Euclidean(2), 4, 3, "geometric")
    assert isinstance(flat, TangentLogits)
    x = torch.randn(5, 4)
    torch.testing.assert_close(flat(x), x @ flat.weight.T + flat.bias)


def test_linear_on_a_curved_space_is_of_the_logarithms():
    space = Stereographic(2, -1.0)
    made = logits_decoder("linear", space, 4, 3, "geometric")
    x = space.expmap0(torch.randn(5, 4))
    torch.testing.assert_close(made(x), space.logmap0(x) @ made.weight.T + made.bias)


def test_stereographic_on_flat_space_is_its_limit():
    flat, limit = (
        logits_decoder("stereographic", space, 4, 3, "geometric")
        for space in (Euclidean(2), Stereographic(2, 0.0))
    )
    limit.load_state_dict(flat.state_dict(), strict=False)
    x = torch.randn(5, 4)
    torch.testing.assert_close(flat(x), limit(x))


def test_what_there_is_not_is_refused():
    with pytest.raises(UsageError, match=r"auto, stereographic or linear.*'softmax'"):
        logits_decoder("softmax", Euclidean(), 4, 3, "geometric")
    with pytest.raises(UsageError, match="'printed'"):
        logits_decoder("auto", Stereographic(), 4, 3, "printed")
    elsewhere = torch.nn.Module()
    for kind in ("auto", "stereographic"):
        with pytest.raises(UsageError, match=r"Module space.*task.decoder=linear"):
            logits_decoder(kind, elsewhere, 4, 3, "geometric")

"""Attention among tokens against torch's own layers, with the same parameters."""

import pytest
import torch
from torch import nn

from curvlab.models.nagphormer import token_encoder_layer


def gradients(module, tokens):
    """Output of a module and gradients of its square, of the tokens and of all parameters."""
    module.zero_grad()
    x = tokens.clone().requires_grad_()
    out = module(x)
    return out, torch.autograd.grad(out.square().sum(), [x, *module.parameters()])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("training", [True, False])
def test_the_layer_is_the_pre_norm_encoder_layer(training, heads):
    options = {"batch_first": True, "norm_first": True}
    theirs = nn.TransformerEncoderLayer(8, heads, 16, 0.0, "gelu", **options)
    for parameter in theirs.train(training).parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = token_encoder_layer(8, heads, 0.0).train(training)
    ours.load_state_dict(theirs.state_dict())
    tokens = torch.randn(5, 4, 8)
    torch.testing.assert_close(gradients(ours, tokens), gradients(theirs, tokens))
    with torch.no_grad():  # in which torch has a path of its own
        torch.testing.assert_close(ours(tokens), theirs(tokens))

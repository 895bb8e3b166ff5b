"""Attention among tokens against torch's own layers, with the same parameters."""

import pytest
import torch
from torch import nn

from curvlab.errors import UsageError
from curvlab.layers.token_attention import TokenAttention, token_encoder_layer


def gradients(module, tokens):
    """Output of a module and gradients of its square, of the tokens and of all parameters."""
    module.zero_grad()
    x = tokens.clone().requires_grad_()
    out = module(x, x, x)[0] if isinstance(module, nn.MultiheadAttention) else module(x)
    return out, torch.autograd.grad(out.square().sum(), [x, *module.parameters()])


def with_its_parameters(ours, theirs):
    """Both modules with the same random parameters."""
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def test_what_it_does_not_do_is_refused():
    attention, x = TokenAttention(8, 2, 0.0), torch.zeros(2, 3, 8)
    refused = [
        ((x + 0,), {}),
        ((x, x + 0), {}),
        ((x, x), {"attn_mask": torch.zeros(3, 3)}),
        ((x, x), {"key_padding_mask": torch.zeros(2, 3)}),
        ((x, x), {"is_causal": True}),
        ((x, x), {"need_weights": True}),
    ]
    for others, options in refused:
        with pytest.raises(UsageError, match="MultiheadAttention"):
            attention(x, *others, **options)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_it_is_multihead_attention(heads):
    theirs = nn.MultiheadAttention(8, heads, batch_first=True)
    ours, theirs = with_its_parameters(TokenAttention(8, heads, 0.0), theirs)
    tokens = torch.randn(5, 4, 8)
    torch.testing.assert_close(gradients(ours, tokens), gradients(theirs, tokens))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("training", [True, False])
def test_the_layer_is_the_pre_norm_encoder_layer(training):
    theirs = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
    ours, theirs = with_its_parameters(token_encoder_layer(8, 2, 0.0), theirs)
    tokens = torch.randn(5, 4, 8)
    ours, theirs = ours.train(training), theirs.train(training)
    torch.testing.assert_close(gradients(ours, tokens), gradients(theirs, tokens))
    with torch.no_grad():  # in which torch has a path of its own
        torch.testing.assert_close(ours(tokens), theirs(tokens))


def test_attention_is_dropped_in_training_alone():
    attention = TokenAttention(8, 2, 0.25)
    nn.init.zeros_(attention.in_proj_weight[:16])  # all tokens count alike
    attention.in_proj_weight.data[16:] = torch.eye(8)
    attention.out_proj.weight.data.copy_(torch.eye(8))
    tokens = torch.ones(4000, 3, 8)
    torch.testing.assert_close(attention.eval()(tokens)[0], tokens)
    kept = attention.train()(tokens)[0][..., ::4]  # of each head the number kept, times 4 / 9
    counts = (kept * 9 / 4).round()
    torch.testing.assert_close(kept, counts * 4 / 9, atol=1e-4, rtol=0.0)
    # Binomial with n = 3 and p = 3/4, to four standard errors of 24,000 draws.
    assert counts.mean().item() == pytest.approx(2.25, abs=4 * (3 * 0.1875 / 24000) ** 0.5)

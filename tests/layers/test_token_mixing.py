"""The mixing of tokens in C++ is that of operations on tensors, in value and derivatives."""

import math

import pytest
import torch

from curvlab.cpp import kernel_kind, use_kernels
from curvlab.layers import PolynomialAttention, token_mixing
from curvlab.layers.polynomial_attention import mix_tokens
from drawn import draw

pytestmark = pytest.mark.usefixtures("cpp_kernels")

TOKENS = 5
LARGE = 30.0
"""Size of queries whose scores are rounded to 1 and -1."""


def layer(heads, dim, dropout=0.0):
    attention = PolynomialAttention(TOKENS - 1, dim, heads, 1.0, 1.4, dropout)
    with torch.no_grad():
        attention.beta.copy_(draw(*attention.beta.shape, seed=3))
    return attention


def results(attention, tokens, kernels, dtype=torch.float32, second=False):
    """Value, and derivatives by tokens and parameters."""
    attention = attention.to(dtype)
    tokens = tokens.to(dtype).requires_grad_()
    leaves = [tokens, *attention.parameters()]
    with use_kernels(kernels):
        torch.manual_seed(7)  # of dropout
        value = attention(tokens)
        assert kernel_kind() == ("plain" if kernels == "plain" else "C++")
        weights = draw(*value.shape, seed=9, dtype=torch.float32).to(dtype)
        total = (value * weights).sum()
        found = torch.autograd.grad(total, leaves, create_graph=second)
        if second:
            total = sum(each.square().sum() for each in found)
            found = torch.autograd.grad(total, leaves)
    return value, *found


def errors(found, exact):
    pairs = zip(found, exact, strict=True)
    return [((a - b).abs().max() / b.abs().max().clamp_min(1e-3)).item() for a, b in pairs]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("size", [0.01, 1.0, LARGE])
@pytest.mark.parametrize(("heads", "dim"), [(1, 14), (8, 16), (3, 3)])
@pytest.mark.parametrize("nodes", [1, 16, 35])
def test_mixing_is_the_plain_one(nodes, heads, dim, size, dropout):
    """As near to double precision as operations on tensors in single precision."""
    attention = layer(heads, dim, dropout)
    with torch.no_grad():
        attention.query.weight *= size
    tokens = draw(TOKENS, nodes, dim, dtype=torch.float32)
    found = results(attention, tokens, "auto")
    plain = results(attention, tokens, "plain")
    exact = results(attention, tokens, "plain", torch.float64)
    assert max(errors(found, exact)) <= 2 * max(errors(plain, exact)) + 1e-6


def test_second_derivatives_have_the_plain_form():
    attention = layer(2, 6, 0.3)
    tokens = draw(TOKENS, 9, 6, dtype=torch.float32)
    found, expected = (results(attention, tokens, k, second=True) for k in ("auto", "plain"))
    assert max(errors(found, expected)) < 1e-4


def test_threads_change_no_bit():
    inputs = [draw(TOKENS, 90, 6, seed=i, dtype=torch.float32).requires_grad_() for i in range(3)]
    bias = draw(2, 1, TOKENS, dtype=torch.float32).requires_grad_()
    mask = draw(90, 2, TOKENS, TOKENS) > 0
    found, before = [], torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        library = token_mixing.LIBRARY.functions(*inputs, bias)
        mixed = token_mixing.mix_tokens(library, mix_tokens, *inputs, bias, mask)
        slopes = torch.autograd.grad(mixed.square().sum(), [*inputs, bias])
        found.append([mixed, *slopes])
    torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=0, atol=0)


def tanh_by_attention(x):
    """Tokens (x, 0) and (0, 1) of a node have the scores tanh(x) of the first with the second."""
    attention = PolynomialAttention(1, 2, 1, power=0.0, pre_norm=False, residual=False)
    attention.mlp = torch.nn.Identity()
    with torch.no_grad():
        attention.query.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
        attention.key.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    attention.scale = 1.0
    tokens = torch.zeros(2, len(x), 2, dtype=torch.float32)
    tokens[0, :, 0] = x
    tokens[1, :, 1] = 1
    mixed = attention.float()(tokens)
    assert kernel_kind() == "C++"
    return mixed[0, :, 1]


def test_scores_are_within_two_units_in_the_last_place_of_tanh():
    """Also near 0, where exp(x) - 1 cancels, and where the exponent of exp(2 x) changes."""
    powers = torch.logspace(-37, 1.5, 20_000)
    changes = math.log(2) / 2 * (torch.arange(30) + 0.5)
    x = torch.cat([powers, -powers, changes, changes * (1 - 1e-7)]).float()
    exact = x.double().tanh()
    unit = torch.finfo(torch.float32).eps * exact.abs()
    assert ((tanh_by_attention(x).double() - exact).abs() <= 2 * unit).all()


def test_scores_of_infinite_products_are_one_and_those_of_nan_are_nan():
    x = torch.tensor([torch.inf, -torch.inf, 100.0, -100.0, 0.0, torch.nan])
    found = tanh_by_attention(x)
    assert found[5].isnan()
    assert found[2:5].tolist() == [1, -1, 0]
    assert not found[:2].isfinite().any()  # infinity times 0 in the products of other tokens


def test_half_precision_has_the_plain_form():
    attention = layer(2, 6)
    with torch.autocast("cpu", torch.bfloat16):
        attention(draw(TOKENS, 9, 6, dtype=torch.float32)).float().sum().backward()
    assert kernel_kind() == "plain"

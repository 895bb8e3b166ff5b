"""Dropout by shared random numbers is dropout."""

import pytest
import torch

from curvlab.layers.elementwise import Dropout, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_entries_are_kept_at_their_rate_and_the_mean_is_the_input(p):
    out = dropout(torch.ones(1001, 333), p, training=True)
    rate = (out != 0).double().mean().item()
    error = (p * (1 - p) / out.numel()) ** 0.5
    assert rate == pytest.approx(1 - p, abs=5 * error)
    assert out.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=1e-4)


def test_the_gradient_is_the_mask():
    x = torch.randn(7, 5).requires_grad_()
    out = dropout(x, 0.3, training=True)
    out.sum().backward()
    torch.testing.assert_close(out, x * x.grad)


def test_seed_evaluation_and_zero():
    x, module = torch.randn(7, 5), Dropout(0.5)
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(module(x))
    assert torch.equal(*results)
    assert not torch.equal(results[0], module(x))
    assert module.eval()(x) is x
    assert torch.equal(dropout(x, 0.0, training=True), x)


def test_entries_are_independent_of_those_beside_them():
    """They share a random number; pairs at any distance agree as often as chance."""
    kept = dropout(torch.ones(400_000), 0.5, training=True) != 0
    for distance in range(1, 9):
        agree = (kept[:-distance] == kept[distance:]).double().mean().item()
        assert agree == pytest.approx(0.5, abs=5 * 0.5 / 400_000**0.5)

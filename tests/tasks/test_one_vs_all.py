"""The loss: the paper's label smoothing, queries scored once, products in blocks."""

import math

import pytest
import torch
import torch.nn.functional as F

from curvlab.tasks import triple_losses
from curvlab.tasks.triple_losses import one_vs_all_loss


def loss_of(scores, query, tail, smoothing):
    """The loss of scores that are there."""
    return one_vs_all_loss(
        lambda rows, made: made[rows], [scores], scores.shape, query, tail, smoothing
    )


def number(scores, query, tail, smoothing):
    """The loss of scores, as a number."""
    scores = scores.detach().requires_grad_()
    return float(loss_of(scores, query, tail, smoothing).detach())


def of_products(queries, candidates, query, tail, smoothing):
    """The loss of dot products, a block at a time."""
    shape = len(queries), len(candidates)
    sources = queries, candidates
    return one_vs_all_loss(lambda rows, q, c: q[rows] @ c.T, sources, shape, query, tail, smoothing)


def problem(dtype=torch.float64):
    """Five queries over eleven entities and eight triples, some of the same query."""
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(5, 4, generator=generator, dtype=dtype).requires_grad_()
    candidates = torch.randn(11, 4, generator=generator, dtype=dtype).requires_grad_()
    query = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
    tail = torch.randint(0, 11, (8,), generator=generator)
    return queries, candidates, query, tail


def test_numbers_of_the_specification():
    scores = torch.tensor([[2.0, 1.0, 0.0]], dtype=torch.float64)
    first = torch.tensor([0])
    loss = number(scores, first, first, 0.1)
    assert loss == pytest.approx(0.55760596, abs=1e-8)
    assert loss == pytest.approx(float(F.cross_entropy(scores, first, label_smoothing=0.15)))
    for entities, least in ((14541, 1.28354885), (40943, 1.38707414)):
        target = torch.full((1, entities), 0.1 / (entities - 1), dtype=torch.float64)
        target[0, 0] = 0.9
        assert number(target.log(), first, first, 0.1) == pytest.approx(least)
        level = number(torch.zeros(1, entities), first, first, 0.1)
        assert level == pytest.approx(math.log(entities), rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize("block", [1, 30, 2**20])
def test_each_loss_is_torchs_of_all_targets(smoothing, binary, per_query, block, monkeypatch):
    monkeypatch.setattr(triple_losses, "BLOCK", block)
    queries, candidates, query, tail = problem()
    tail = torch.arange(8)  # of a query each tail once
    other = smoothing / 10
    hot = torch.full((8, 11), other, dtype=torch.float64)
    hot[torch.arange(8), tail] = 1 - smoothing
    rows = query
    if per_query:
        rows, true = torch.arange(5), torch.zeros(5, 11, dtype=torch.float64)
        true[query, tail] = 1.0
        share = true if binary else true / true.sum(1, keepdim=True)
        hot = other + (1 - smoothing - other) * share
    scores = (queries @ candidates.T)[rows]
    if binary:
        each = F.binary_cross_entropy_with_logits(scores, hot, reduction="none").sum(1)
        expected = each.mean()
    else:
        expected = F.cross_entropy(scores, hot)
    loss = one_vs_all_loss(
        lambda rows, q, c: q[rows] @ c.T, (queries, candidates), (5, 11), query, tail, smoothing,
        binary, per_query,
    )  # fmt: skip
    torch.testing.assert_close(loss, expected)
    leaves = (queries, candidates)
    torch.testing.assert_close(
        torch.autograd.grad(3 * loss, leaves), torch.autograd.grad(3 * expected, leaves)
    )


def test_large_scores_do_not_overflow():
    queries, candidates, query, tail = problem(torch.float32)
    loss = of_products(1000 * queries, candidates, query, tail, 0.1)
    exact = number(1000 * queries.double() @ candidates.double().T, query, tail, 0.1)
    assert float(loss.detach()) == pytest.approx(exact, rel=1e-5)


def test_mixed_precision_is_as_exact_as_its_products():
    queries, candidates, query, tail = problem(torch.float32)
    exact = of_products(queries, candidates, query, tail, 0.1)
    expected = torch.autograd.grad(exact, (queries, candidates))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = of_products(queries, candidates, query, tail, 0.1)
    found = torch.autograd.grad(rough, (queries, candidates))
    assert rough.dtype == torch.float32
    assert float(rough.detach()) == pytest.approx(float(exact.detach()), rel=2e-2)
    for own, right in zip(found, expected, strict=True):
        assert own.dtype == torch.float32
        torch.testing.assert_close(own, right, atol=2e-2, rtol=5e-2)

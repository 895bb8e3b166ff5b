"""Cross-entropy of true tails against all entities, with label smoothing.

The target of a triple is 1 - e for its tail and e / (E - 1) for each other of the E entities
(CAT, Section 4.5; torch's `label_smoothing` spreads e over all E), so that

    loss = mean_b [ logsumexp(S_b) - (1 - e - k) S_bt - k sum_i S_bi ],  k = e / (E - 1).

Triples b that share head and relation share a row of S, which is made once and weighted by their
number: the same loss and gradient with fewer scores.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

# Entries of a block of scores: a few megabytes, which a processor's cache holds; an accelerator
# wants larger ones.
BLOCK, ACCELERATOR_BLOCK = 2**21, 2**26


def one_vs_all_loss(scores: Tensor, query: Tensor, tail: Tensor, smoothing: float) -> Tensor:
    """The loss of scores that are there.

    Args:
        scores: `[queries, entities]`.
        query: Row of each triple `[triples]`.
        tail: Its true tail.
        smoothing: e, from 0 up to 1.
    """
    scores = scores.float() if scores.dtype == torch.bfloat16 else scores
    other = smoothing / (scores.shape[1] - 1)
    rows = scores.logsumexp(1) - other * scores.sum(1)
    return (rows[query] - (1 - smoothing - other) * scores[query, tail]).mean()


def dot_product_loss(
    queries: Tensor, candidates: Tensor, query: Tensor, tail: Tensor, smoothing: float
) -> Tensor:
    """`one_vs_all_loss` of the scores `queries @ candidates.T`, of which only a block is ever held.

    Args:
        queries: `[queries, dim]`.
        candidates: Embeddings of all entities `[entities, dim]`.
        query: Row of each triple `[triples]`.
        tail: Its true tail.
        smoothing: e, from 0 up to 1.
    """
    other = smoothing / (len(candidates) - 1)
    weight = torch.zeros(len(queries), dtype=queries.dtype, device=queries.device)
    weight.index_add_(0, query, weight.new_ones(len(query))).div_(len(query))
    total: Tensor = _WeightedLogSumExp.apply(queries, candidates, weight)
    true = torch.linalg.vecdot(queries[query], candidates[tail].to(queries.dtype)).mean()
    everything = weight @ (queries @ candidates.sum(0).to(queries.dtype))
    return total - (1 - smoothing - other) * true - other * everything


class _WeightedLogSumExp(Function):
    """sum_q weight_q logsumexp_i <queries_q, candidates_i>; gradients are made on the way."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, candidates: Tensor, weight: Tensor) -> Tensor:
        """Go through the queries in blocks."""
        entries = BLOCK if candidates.device.type == "cpu" else ACCELERATOR_BLOCK
        rows = max(1, entries // len(candidates))
        total = torch.zeros((), dtype=weight.dtype, device=weight.device)
        of_queries = []
        of_candidates = torch.zeros_like(candidates)
        for block, share in zip(queries.split(rows), weight.split(rows), strict=True):
            scores = (block @ candidates.T).to(weight.dtype)
            top = scores.amax(1, keepdim=True)
            scores.sub_(top).exp_()
            sums = scores.sum(1, keepdim=True)
            total += share @ (sums.log() + top).squeeze(1)
            scores.mul_(share.unsqueeze(1) / sums)
            of_queries.append((scores @ candidates).to(queries.dtype))
            of_candidates += scores.T @ block
        ctx.save_for_backward(torch.cat(of_queries), of_candidates)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Scale the gradients."""
        of_queries, of_candidates = ctx.saved_tensors
        (gradient,) = gradients
        return gradient * of_queries, gradient * of_candidates, None

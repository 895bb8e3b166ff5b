"""Losses of triples against all entities or against samples.

Ruffinelli et al. 2020, "You CAN teach an old dog new tricks! On training knowledge graph
embeddings", compare these losses.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def block_entries(sources: Sequence[Tensor]) -> int:
    """Number of entries of a block of scores.

    A small block fits in a processor's cache of a few megabytes. But every block adds to the
    gradient of each source, which is slower than the scores if a source is much larger than a
    block. A block has at most 128 MiB of float32. An accelerator needs larger blocks to be busy.
    """
    if sources[0].device.type != "cpu":
        return 2**26
    largest = max(source.numel() for source in sources)
    if largest <= 2**22:
        return 2**21
    return min(largest, 2**25)


def one_vs_all_loss(
    scores: Callable[..., Tensor],
    sources: Sequence[Tensor],
    shape: tuple[int, int],
    query: Tensor,
    tail: Tensor,
    smoothing: float,
    binary: bool = False,
    per_query: bool = False,
    added: bool = False,
) -> Tensor:
    """Mean cross-entropy of true tails against all entities, one block of scores at a time.

    The target of a triple is 1 - e for its tail and e / (E - 1) for each other of the E entities
    (CAT, Section 4.5), so that

        loss = mean_b [ logsumexp(S_b) - (1 - e - k) S_bt - k sum_i S_bi ],  k = e / (E - 1).

    Triples b with the same head and relation share a row of S, which is computed once and weighted
    by their number.

    `cross_entropy` of torch, and PyKEEN's softmax loss, spread their `label_smoothing` e' over all
    E entities: e = e' (E - 1) / E. `binary_cross_entropy_with_logits`, in PyKEEN too, is the mean
    over entities; this loss is E times that mean.

    Args:
        scores: function of a slice of the rows, and of the detached sources, to the rows' scores.
        sources: tensors from which scores are computed.
        shape: numbers of rows and of entities E.
        query: row of each triple `[triples]`.
        tail: true tail of each triple `[triples]`.
        smoothing: e.
        binary: sum softplus(S_bi) - y S_bi over all entities, with the same targets y.
        per_query: weigh each row once; all its tails are its targets ("KvsAll", Dettmers et al.
            2018).
        added: replace the targets y of a row with n tails by ((1 - e) y + 1 / E) / ((1 - e) n + 1),
            as in ConvE and LibKGE: a row with few tails is smoothed more.
    """
    rows, entities = shape
    dtype = torch.promote_types(sources[0].dtype, torch.float32)
    ones = torch.ones(len(query), device=query.device, dtype=torch.float64)
    tails = ones.new_zeros(rows).index_add_(0, query, ones)
    counts = tails[query]
    divisor = torch.full_like(counts, len(query))
    if per_query:
        divisor = rows * counts
    weight = torch.zeros(rows, device=query.device, dtype=dtype)
    weight.index_add_(0, query, (1 / divisor).to(dtype))
    if per_query and binary:  # every tail is a separate target
        divisor = divisor / counts
    share = torch.full_like(weight, smoothing, dtype=torch.float64)
    if added:
        share = (1 - 1 / entities) / ((1 - smoothing) * tails + 1)
    targets = query, tail, divisor, weight, share, binary
    loss: Tensor = _OneVsAll.apply(scores, shape, targets, *sources)
    return loss


def _softmax(scores: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """`logsumexp` of each row, and its derivative times the row's share."""
    top = scores.amax(1, keepdim=True)
    derivative = (scores - top).exp_()
    sums = derivative.sum(1, keepdim=True)
    value = (sums.log() + top).squeeze(1)
    return value, derivative.mul_(share.unsqueeze(1) / sums)


def _softplus(scores: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of log(1 + exp(score)) `[rows]`, and its derivative times the row's share."""
    value = F.softplus(scores).sum(1)
    return value, scores.sigmoid().mul_(share.unsqueeze(1))


class _OneVsAll(Function):
    """Loss of `one_vs_all_loss`. The forward pass computes the gradients, block by block.

    So the scores of one block at a time are in memory.
    """

    @staticmethod
    def forward(
        ctx: Any,
        make_scores: Callable[..., Tensor],
        shape: tuple[int, int],
        targets: tuple[Any, ...],
        *sources: Tensor,
    ) -> Tensor:
        rows, entities = shape
        query, tail, divisor, weight, smoothing, binary = targets
        other_target = smoothing / (entities - 1)
        tail_target = 1 - smoothing - other_target
        tail_weight = (tail_target[query] / divisor).to(weight.dtype)
        partition = _softplus if binary else _softmax
        total = weight.new_zeros(())
        gradients = [torch.zeros_like(source) for source in sources]
        leaves = []
        for source in sources:
            is_parameter = source.is_leaf and source.requires_grad
            leaves.append(source if is_parameter else source.detach().requires_grad_())
        size = block_entries(sources) // entities
        size = max(1, size // 8 * 8)  # products are fastest in multiples of 8 rows
        for start in range(0, rows, size):
            block = slice(start, start + size)
            with torch.enable_grad():
                block_scores = make_scores(block, *leaves)
            dtype = torch.promote_types(block_scores.dtype, torch.float32)
            scores = block_scores.detach().to(dtype)
            share = weight[block].to(scores)
            value, derivative = partition(scores, share)
            block_target = other_target[block].to(scores)
            total += share @ (value - block_target * scores.sum(1))
            derivative.sub_((block_target * share).unsqueeze(1))
            # All triples are indexed in every block, with the weight 0 outside their own:
            # their number in a block would synchronise a device.
            row = query - start
            is_inside = (row >= 0) & (row < len(share))
            block_weight = (tail_weight * is_inside.to(tail_weight.dtype)).to(scores)
            row = row.clamp(0, len(share) - 1)
            total -= scores[row, tail] @ block_weight
            derivative.index_put_((row, tail), -block_weight, accumulate=True)
            block_gradients = torch.autograd.grad(
                block_scores, leaves, derivative.to(block_scores.dtype), allow_unused=True
            )
            for gradient, block_gradient in zip(gradients, block_gradients, strict=True):
                if block_gradient is not None:
                    gradient += block_gradient
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        products = [gradients[0] * gradient for gradient in ctx.saved_tensors]
        return None, None, None, *products


def adversarial_weights(scores: Tensor, temperature: float) -> Tensor:
    """Softmax of scores `[triples, negatives]` without gradient; 0 where every score is -inf."""
    weights = (temperature * scores).softmax(1).detach()
    is_empty = (scores == -torch.inf).all(1, keepdim=True)
    return weights.masked_fill(is_empty, 0)


def self_adversarial_loss(p: Tensor, n: Tensor, margin: float, temperature: float) -> Tensor:
    """Loss `[triples]` with softmax weights of the samples (Sun et al. 2019, equations 4 and 5)."""
    positive = F.softplus(-margin - p)[:, 0]
    negative = adversarial_weights(n, temperature) * F.softplus(margin + n)
    return (positive + negative.sum(1)) / 2


SAMPLE_LOSSES: Mapping[str, Callable[..., Tensor]] = {
    "softmax": lambda p, n, *_: torch.cat([p, n], 1).logsumexp(1) - p[:, 0],
    "bce": lambda p, n, *_: F.softplus(-p)[:, 0] + F.softplus(n).sum(1),
    "margin": lambda p, n, margin, _: F.relu(margin + n - p).mean(1),
    "self_adversarial": self_adversarial_loss,
}
"""Losses `[triples]` by name.

Each is a function of the scores p `[triples, 1]` of triples, the scores n `[triples, negatives]` of
their samples, the margin and the temperature. A score of -inf adds nothing.
"""


def corrupt(
    triples: Tensor,
    negatives: int,
    entities: int,
    head_share: Tensor | float,
    both_ends: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace the head or the tail of triples by entities drawn uniformly.

    Returns heads, relations and tails `[triples, negatives]`.

    Args:
        triples: heads, relations and tails `[3, triples]`.
        negatives: number of samples per triple.
        entities: number of entities.
        head_share: probability of replacing the head instead of the tail, a number or `[triples]`.
        both_ends: replace both ends, independently.
    """
    head, relation, tail = triples.unsqueeze(2).expand(-1, -1, negatives)
    entity = torch.randint(entities, head.shape, device=head.device)
    if both_ends:
        return torch.randint_like(entity, entities), relation, entity
    probability = torch.as_tensor(head_share, device=head.device).reshape(-1, 1)
    is_head = torch.rand(head.shape, device=head.device) < probability
    head = torch.where(is_head, entity, head)
    tail = torch.where(is_head, tail, entity)
    return head, relation, tail

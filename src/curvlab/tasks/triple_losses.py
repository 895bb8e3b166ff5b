"""Losses of triples against all entities or sampled ones, and regularisers of embeddings.

Ruffinelli et al. 2020, "You CAN teach an old dog new tricks! On training knowledge graph
embeddings", compare them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def block_entries(sources: Sequence[Tensor]) -> int:
    """Entries of a block of scores.

    A processor's cache holds a few megabytes; but every block adds to the gradient of each source,
    which takes longer where a source is much larger. At most 128 MiB of float32. An accelerator
    needs larger blocks to be busy.
    """
    if sources[0].device.type != "cpu":
        return 2**26
    largest = max(source.numel() for source in sources)
    return min(largest, 2**25) if largest > 2**22 else 2**21


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
    """The mean cross-entropy of true tails against all entities; one block of scores at a time.

    The target of a triple is 1 - e for its tail and e / (E - 1) for each other of the E entities
    (CAT, Section 4.5), so that

        loss = mean_b [ logsumexp(S_b) - (1 - e - k) S_bt - k sum_i S_bi ],  k = e / (E - 1).

    Triples b that share head and relation share a row of S, which is made once and weighted by
    their number. The `binary` loss sums softplus(S_bi) - y S_bi over all entities, of the same
    targets y. `per_query` weighs each row once, however many tails it has, which all are its
    targets ("KvsAll", Dettmers et al. 2018). With `added`, a row of n targets has as its targets
    (1 - e) y + 1 / E, divided by their sum (1 - e) n + 1, as in ConvE and LibKGE: a row of few
    targets is smoothed more.

    `cross_entropy` of torch, and PyKEEN's softmax loss, spread their `label_smoothing` e' over all
    E entities: this loss has e = e' (E - 1) / E. `binary_cross_entropy_with_logits`, in PyKEEN too,
    is the mean over entities: E times as much is this loss.

    `scores` makes those of a slice of the rows from the detached sources; `shape` are the numbers
    of rows and entities, `query` the row of each triple `[triples]`, `tail` its true tail,
    `smoothing` e.
    """
    dtype = torch.promote_types(sources[0].dtype, torch.float32)
    ones = torch.ones(len(query), device=query.device, dtype=torch.float64)
    counts = ones.new_zeros(shape[0]).index_add_(0, query, ones)[query]
    among = shape[0] * counts if per_query else torch.full_like(counts, len(query))
    weight = torch.zeros(shape[0], device=query.device, dtype=dtype)
    weight.index_add_(0, query, (1 / among).to(dtype))
    if per_query and binary:  # every tail is a target of its own
        among = among / counts
    share = torch.full_like(weight, smoothing, dtype=torch.float64)
    if added:
        tails = ones.new_zeros(shape[0]).index_add_(0, query, ones)
        share = (1 - 1 / shape[1]) / ((1 - smoothing) * tails + 1)
    truth = query, tail, among, weight, share, binary
    loss: Tensor = _OneVsAll.apply(scores, shape, truth, *sources)
    return loss


def _softmax(scores: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """`logsumexp` of each row, and its derivative times a row's share."""
    top = scores.amax(1, keepdim=True)
    derivative = (scores - top).exp_()
    sums = derivative.sum(1, keepdim=True)
    return (sums.log() + top).squeeze(1), derivative.mul_(share.unsqueeze(1) / sums)


def _softplus(scores: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of log(1 + exp(score)) `[rows]`, and its derivative times a row's share."""
    return F.softplus(scores).sum(1), scores.sigmoid().mul_(share.unsqueeze(1))


class _OneVsAll(Function):
    """The loss; a block's gradient is made with its scores, after which it is forgotten."""

    @staticmethod
    def forward(
        ctx: Any,
        make: Callable[..., Tensor],
        shape: tuple[int, int],
        truth: tuple[Any, ...],
        *sources: Tensor,
    ) -> Tensor:
        rows, entities = shape
        query, tail, among, weight, smoothing, binary = truth
        other_of_row = smoothing / (entities - 1)
        dtype = weight.dtype
        true = ((1 - smoothing - other_of_row)[query] / among).to(dtype)
        partition = _softplus if binary else _softmax
        total = weight.new_zeros(())
        gradients = [torch.zeros_like(source) for source in sources]
        leaves = [
            s if s.is_leaf and s.requires_grad else s.detach().requires_grad_() for s in sources
        ]
        rows_of_block = block_entries(sources) // entities
        size = max(1, rows_of_block // 8 * 8)  # products are fastest in multiples of 8 rows
        for start in range(0, rows, size):
            with torch.enable_grad():
                block_scores = make(slice(start, start + size), *leaves)
            scores = block_scores.detach().to(
                torch.promote_types(block_scores.dtype, torch.float32)
            )
            share = weight[start : start + size].to(scores)
            value, derivative = partition(scores, share)
            other = other_of_row[start : start + size].to(scores)
            total += share @ (value - other * scores.sum(1))
            derivative.sub_((other * share).unsqueeze(1))
            # every block looks at all triples, so that their number in it need not be known
            row = query - start
            inside = (true * ((row >= 0) & (row < len(share))).to(dtype)).to(scores)
            row = row.clamp(0, len(share) - 1)
            total -= scores[row, tail] @ inside
            derivative.index_put_((row, tail), -inside, accumulate=True)
            parts = torch.autograd.grad(
                block_scores, leaves, derivative.to(block_scores.dtype), allow_unused=True
            )
            for gradient, part in zip(gradients, parts, strict=True):
                if part is not None:
                    gradient += part
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (None,) * 3 + tuple(gradients[0] * gradient for gradient in ctx.saved_tensors)


def adversarial_weights(scores: Tensor, temperature: float) -> Tensor:
    """Softmax of scores `[triples, negatives]` as constants; 0 where every score is -inf."""
    weights = (temperature * scores).softmax(1).detach()
    return weights.masked_fill((scores == -torch.inf).all(1, keepdim=True), 0)


SAMPLED: Mapping[str, Callable[..., Tensor]] = {
    "softmax": lambda p, n, *_: torch.cat([p, n], 1).logsumexp(1) - p[:, 0],
    "bce": lambda p, n, *_: F.softplus(-p)[:, 0] + F.softplus(n).sum(1),
    "margin": lambda p, n, margin, _: F.relu(margin + n - p).mean(1),
    # Sun et al. 2019, equations 4 and 5
    "self_adversarial": lambda p, n, margin, temperature: (
        (
            F.softplus(-margin - p)[:, 0]
            + (adversarial_weights(n, temperature) * F.softplus(margin + n)).sum(1)
        )
        / 2
    ),
}
"""Losses `[triples]` of the scores p `[triples, 1]` of true triples and n `[triples, negatives]` of
sampled ones, of margin and temperature; a score of -inf adds nothing."""

REGULARIZERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    # Lacroix et al. 2018, equation 7
    "n3": lambda moduli: moduli.pow(3).sum(-1) / 3,
    "l2": lambda moduli: moduli.square().sum(-1) / 2,
}
"""Costs `[...]` of the moduli `[..., dim]` of embeddings."""


def dura(moduli: Tensor, query: Tensor) -> Tensor:
    """Cost `[triples]` of a query's embedding and of its tail.

    Of `moduli` `[3, triples, dim]` of head, relation and tail, the tail's count: inverse relations
    have the head's (Zhang et al. 2020, equation 5).
    """
    return query.square().sum(-1) + moduli[2].square().sum(-1)


def corrupt(
    triples: Tensor,
    negatives: int,
    entities: int,
    head_share: Tensor | float,
    both: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace the head or the tail of triples `[3, triples]` by entities drawn uniformly.

    The head is replaced with probability `head_share`, a number or `[triples]`, else the tail; or
    `both`, each by a draw of its own. Returns three columns `[triples, negatives]`.
    """
    head, relation, tail = (column.unsqueeze(1).expand(-1, negatives) for column in triples)
    drawn = torch.randint(entities, head.shape, device=head.device)
    if both:
        return torch.randint_like(drawn, entities), relation, drawn
    side = torch.rand(head.shape, device=head.device) < torch.as_tensor(
        head_share, device=head.device
    ).reshape(-1, 1)
    return torch.where(side, drawn, head), relation, torch.where(side, tail, drawn)

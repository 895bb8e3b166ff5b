"""Knowledge-graph completion with a table of entities that no single process can hold.

The rows are shared out over the processes (`ShardedTable`), all of which go through the same
queries. A process scores its own rows, a block at a time. The softmax needs the maximum and the
sum of all processes, a rank the sum of their counts; no scores are exchanged:

    loss = mean_b [ logsumexp(S_b) - (1 - e - k) S_bt - k sum_i S_bi ],  k = e / (N - 1)

over N candidates. `torch.distributed.tensor.parallel.loss_parallel` has no label smoothing, holds
all scores, and makes dense gradients of a DTensor's rows.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.finite import DivergedError
from curvlab.layers.sharded_table import ShardedTable, reduced
from curvlab.metrics.ranking import Standing
from curvlab.models.triple_scorer import TripleScorer

# Scores held at a time.
BLOCK = 2**21


def shard_entities(model: TripleScorer, num_entities: int, seed: int = 0) -> ShardedTable:
    """Put a table in shards in the place of a model's entities.

    Build the model with `num_entities=1`, so that it never has a table of its own.

    Args:
        model: one whose scores are a function of a query and an entity's row.
        num_entities: rows of the new table.
        seed: of its values.

    Raises:
        UsageError: the scores of the model need more than that.
    """
    for owner in model.modules():
        if isinstance(old := getattr(owner, "entities", None), nn.Embedding):
            model.row_scores(old.weight[:1].detach(), old.weight[:1].detach())  # or it refuses
            table = ShardedTable(num_entities, old.embedding_dim, seed).to(old.weight.dtype)
            owner.entities = table
            return table
    raise UsageError(f"{type(model).__name__} has no table of entities to share out")


def _table(model: TripleScorer) -> ShardedTable:
    """The table that `shard_entities` made."""
    for module in model.modules():
        if isinstance(module, ShardedTable):
            return module
    raise UsageError(f"the entities of {type(model).__name__} are not in shards: shard_entities")


def sharded_loss(
    model: TripleScorer,
    batch: Data,
    negatives: Tensor | None = None,
    smoothing: float = 0.0,
) -> Tensor:
    """The mean cross-entropy of true tails, the same number in all processes.

    Args:
        model: its entities are in shards.
        batch: `head`, `relation` and `tail` `[triples]`, the same in all processes.
        negatives: entities that compete, the same in all processes, beside all tails of the batch;
            None for all entities, whose gradient is as large as the shard.
        smoothing: e, from 0 up to 1.
    """
    table, query = _table(model), model(batch)
    rows: Tensor = table.shard
    if negatives is None:
        candidates = table.num_embeddings
        column = batch.tail - table.first
    else:
        chosen = torch.cat([negatives, batch.tail]).unique()
        own = chosen[table.here(chosen)]
        candidates, rows, column = len(chosen), table.own(own), torch.searchsorted(own, batch.tail)
    column = torch.where(table.here(batch.tail), column, -1)
    loss: Tensor = _ShardedSoftmax.apply(
        model.row_scores, query, rows, column, candidates, smoothing
    )
    auxiliary = model.auxiliary_loss()
    return loss if auxiliary is None else loss + auxiliary


class _ShardedSoftmax(Function):
    """The loss from the rows of each process, and its gradient, made block by block."""

    @staticmethod
    def forward(
        ctx: Any,
        score: Callable[[Tensor, Tensor], Tensor],
        query: Tensor,
        rows: Tensor,
        column: Tensor,
        candidates: int,
        smoothing: float,
    ) -> Tensor:
        """Go through the rows twice: for the sums, and for the gradient."""
        other = smoothing / max(1, candidates - 1)
        true = 1 - smoothing - other
        starts = range(0, len(rows), size := max(1, BLOCK // len(query)))
        top = query.new_full((len(query),), -torch.inf)
        sums, linear = torch.zeros_like(top), torch.zeros_like(top)
        for start in starts:
            scores = score(query, rows[start : start + size])
            higher = torch.maximum(top, scores.amax(1))
            sums = sums * (top - higher).exp() + (scores - higher.unsqueeze(1)).exp().sum(1)
            place, tail = _inside(column, start, scores)
            linear += other * scores.sum(1)
            linear[place] += true * scores[place, tail]
            top = higher
        highest = reduced(top.clone(), largest=True)
        sums, linear = reduced(torch.stack([sums * (top - highest).exp(), linear]))
        normaliser = sums.log() + highest
        of_query, of_rows = torch.zeros_like(query), torch.zeros_like(rows)
        for start in starts if any(ctx.needs_input_grad) else ():
            block = rows[start : start + size]
            leaves = [part.detach().requires_grad_() for part in (query, block)]
            with torch.enable_grad():
                made = score(*leaves)
            derivative = (made.detach() - normaliser.unsqueeze(1)).exp_().sub_(other)
            place, tail = _inside(column, start, made)
            derivative[place, tail] -= true
            first, second = torch.autograd.grad(made, leaves, derivative.div_(len(query)))
            of_query += first
            of_rows[start : start + size] = second
        ctx.save_for_backward(reduced(of_query), of_rows)
        return (normaliser - linear).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients."""
        of_query, of_rows = ctx.saved_tensors
        return None, gradients[0] * of_query, gradients[0] * of_rows, None, None, None


def _inside(column: Tensor, start: int, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Queries whose column is in a block of scores, and the column there; below 0 is nowhere."""
    inside = (column >= 0) & (column >= start) & (column < start + scores.shape[1])
    place = inside.nonzero().squeeze(1)
    return place, column[place] - start


@torch.no_grad()
def sharded_standings(
    model: TripleScorer, batch: Data, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Standing, Standing]:
    """Where the true tails stand among all entities, as `curvlab.metrics.ranking.standings`.

    Args:
        model: its entities are in shards.
        batch: `head`, `relation` and `tail` `[queries]`, the same in all processes.
        known: query and entity of the answers that the filtered ranking leaves out.

    Returns:
        The filtered and the raw standing, the same in all processes.

    Raises:
        DivergedError: A score is not finite; comparisons with NaN would rank the tail first.
    """
    table, query = _table(model), model(batch)
    size = max(1, BLOCK // len(query))
    starts = range(0, len(table.shard), size)
    column = torch.where(table.here(batch.tail), batch.tail - table.first, -1)
    # The true score is taken from the block of its row, where an equal row has the same product.
    true = query.new_zeros(len(query))
    for start in sorted({int(c) // size * size for c in column if c >= 0}):
        scores = model.row_scores(query, table.shard[start : start + size])
        place, tail = _inside(column, start, scores)
        true[place] = scores[place, tail]
    true = reduced(true).unsqueeze(1)
    if known is not None:
        other = known[1] != batch.tail[known[0]]
        known = known[0][other], known[1][other] - table.first
    # above and tied, raw and of the known answers; the last row counts what is not finite
    counts = torch.zeros(5, len(query), dtype=torch.long, device=query.device)
    for start in starts:
        scores = model.row_scores(query, table.shard[start : start + size])
        counts[0] += (scores > true).sum(1)
        counts[1] += (scores == true).sum(1)
        counts[4] += (~scores.isfinite()).sum(1)
        if known is not None:
            place, entity = _inside(known[1], start, scores)
            row = known[0][place]
            found = torch.stack([scores[row, entity], true[row, 0]])
            counts[2].index_add_(0, row, (found[0] > found[1]).long())
            counts[3].index_add_(0, row, (found[0] == found[1]).long())
    above, tied, known_above, known_tied, broken = reduced(counts)
    if broken.any():
        raise DivergedError("scores are not finite")
    tied = tied - 1  # with itself
    return Standing(above - known_above, tied - known_tied), Standing(above, tied)

"""Negative sampling: triples against samples with another head or tail."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import triple_numbers
from curvlab.data.loaders.triple_batches import Corruption
from curvlab.errors import UsageError
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import SideCounts
from curvlab.tasks.triple_losses import SAMPLED, corrupt

Columns = tuple[Tensor, Tensor, Tensor]
"""Heads, relations and tails of triples."""


@dataclass(frozen=True)
class NegativeSampling:
    """Loss of a batch's triples against samples.

    Attributes:
        encoder: model that is trained.
        inverse_relations: whether heads are the tails of inverse relations.

    Other attributes: options of `curvlab.tasks.kg_completion.KnowledgeGraphCompletion`, where
    `shared` is `shared_negatives`.
    """

    encoder: TripleScorer
    loss: str
    negatives: int | SideCounts
    corruption: Corruption
    filtered: bool
    shared: bool
    margin: float
    temperature: float
    subsampling: bool
    inverse_relations: bool

    def __post_init__(self) -> None:
        if self.shared and self.corruption != "tail":
            raise UsageError("task.shared_negatives=true replaces tails: set task.corruption=tail")
        if not isinstance(self.negatives, Mapping):
            return
        if self.shared:
            raise UsageError(
                "task.negatives={head, tail} draws samples for each triple: set "
                "task.shared_negatives=false, or give one number"
            )
        if self.corruption in ("bernoulli", "both"):
            raise UsageError(
                "task.negatives={head, tail} replaces one end at a time, which "
                f"task.corruption={self.corruption} does not: set task.corruption=uniform"
            )

    def __call__(self, batch: Data) -> Tensor:
        """Mean loss of the triples of a batch."""
        triples = triples_of(batch)
        triples.weight = batch.weight if self.subsampling else torch.ones_like(batch.tail)
        if isinstance(self.negatives, Mapping):
            parts = [self._side_losses(triples, batch, side) for side in ("tail", "head")]
        else:
            parts = [self._drawn_losses(triples, batch, self.negatives)]
        losses, weights = (torch.cat(columns) for columns in zip(*parts, strict=True))
        if not self.subsampling:
            return losses.mean()
        weights = weights.to(losses)
        return (weights * losses).sum() / weights.sum()

    def _drawn_losses(self, triples: Data, batch: Data, negatives: int) -> tuple[Tensor, Tensor]:
        """Losses `[triples]` by samples of either end, and the triples' weights."""
        columns = torch.stack([triples.head, triples.relation, triples.tail])
        entities = self.encoder.num_entities
        if self.shared:
            tail = torch.randint(entities, (negatives,), device=columns.device)
            sampled = self.encoder.scores(batch, tail)[batch.query]
            drawn = columns[0].unsqueeze(1), columns[1].unsqueeze(1), tail
            true = self.encoder.triple_scores(triples).unsqueeze(1)
        else:
            both = self.corruption == "both"
            drawn = corrupt(columns, negatives, entities, batch.corrupt_head, both)
            true, sampled = self.encoder.sampled_scores(triples, drawn, both)
        return self._losses(true, self._without_known(sampled, drawn, batch)), triples.weight

    def _side_losses(self, triples: Data, batch: Data, side: str) -> tuple[Tensor, Tensor]:
        """Losses `[triples]` by samples of one side of the triples that predict it, and weights."""
        assert isinstance(self.negatives, Mapping)
        rows = batch[f"{side}_rows"]
        entities = self.encoder.num_entities
        part = Data(**{name: triples[name][rows] for name in ("head", "relation", "tail")})
        head, relation, tail = (c.unsqueeze(1) for c in (part.head, part.relation, part.tail))
        shape = len(rows), self.negatives[side]
        ends = torch.randint(entities, shape, device=rows.device)
        if side == "tail" or self.inverse_relations:
            drawn = head, relation, ends
            scores = self.encoder.tail_scores(part, torch.cat([tail, ends], 1))
            true = scores[:, :1]
            sampled = scores[:, 1:]
        else:
            drawn = ends, relation.expand(shape), tail.expand(shape)
            true, sampled = self.encoder.sampled_scores(part, drawn)
        losses = self._losses(true, self._without_known(sampled, drawn, batch))
        return losses, triples.weight[rows]

    def _losses(self, true: Tensor, sampled: Tensor) -> Tensor:
        return SAMPLED[self.loss](true, sampled, self.margin, self.temperature)

    def _without_known(self, sampled: Tensor, drawn: Columns, batch: Data) -> Tensor:
        """Scores of samples; -inf for training triples if `filtered`."""
        if not self.filtered:
            return sampled
        numbers = triple_numbers(*drawn, self.encoder.num_entities)
        place = torch.searchsorted(batch.known, numbers).clamp(max=len(batch.known) - 1)
        return sampled.where(batch.known[place] != numbers, -torch.inf)


def triples_of(batch: Data) -> Data:
    """The triples of a batch of queries, one head, relation and tail each."""
    row = batch.query
    return Data(head=batch.head[row], relation=batch.relation[row], tail=batch.tail)

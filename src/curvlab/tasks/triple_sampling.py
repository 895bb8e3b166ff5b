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
from curvlab.tasks.triple_losses import SAMPLE_LOSSES, corrupt

Columns = tuple[Tensor, Tensor, Tensor]
"""Heads, relations and tails of triples."""


@dataclass(frozen=True)
class NegativeSampling:
    """Loss of a batch's triples against samples.

    All further attributes are options of `curvlab.tasks.kg_completion.KnowledgeGraphCompletion`.

    Attributes:
        encoder: model to train.
        inverse_relations: whether heads are the tails of inverse relations.
    """

    encoder: TripleScorer
    loss: str
    negatives: int | SideCounts
    corruption: Corruption
    filtered: bool
    shared_negatives: bool
    margin: float
    temperature: float
    subsampling: bool
    inverse_relations: bool

    def __post_init__(self) -> None:
        if self.shared_negatives and self.corruption != "tail":
            raise UsageError("task.shared_negatives=true replaces tails: set task.corruption=tail")
        if not isinstance(self.negatives, Mapping):
            return
        if self.shared_negatives:
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
        triples = batch_triples(batch)
        triples.weight = torch.ones_like(batch.tail)
        if self.subsampling:
            triples.weight = batch.weight
        if isinstance(self.negatives, Mapping):
            tail_losses, tail_weights = self._side_losses(triples, batch, "tail")
            head_losses, head_weights = self._side_losses(triples, batch, "head")
            losses = torch.cat([tail_losses, head_losses])
            weights = torch.cat([tail_weights, head_weights])
        else:
            losses = self._corruption_losses(triples, batch, self.negatives)
            weights = triples.weight
        if not self.subsampling:
            return losses.mean()
        weights = weights.to(losses)
        return (weights * losses).sum() / weights.sum()

    def _corruption_losses(self, triples: Data, batch: Data, negatives: int) -> Tensor:
        """Losses `[triples]` by samples of either end."""
        columns = torch.stack([triples.head, triples.relation, triples.tail])
        entities = self.encoder.num_entities
        if self.shared_negatives:
            tail = torch.randint(entities, (negatives,), device=columns.device)
            scores = self.encoder.scores(batch, tail)[batch.query]
            samples = columns[0].unsqueeze(1), columns[1].unsqueeze(1), tail
            positive = self.encoder.triple_scores(triples).unsqueeze(1)
        else:
            both_ends = self.corruption == "both"
            samples = corrupt(columns, negatives, entities, batch.corrupt_head, both_ends)
            positive, scores = self.encoder.sampled_scores(triples, samples, both_ends)
        return self._losses(positive, self._filter(scores, samples, batch))

    def _side_losses(self, triples: Data, batch: Data, side: str) -> tuple[Tensor, Tensor]:
        """Losses `[rows]` by samples of one side, and weights of the triples that predict it."""
        assert isinstance(self.negatives, Mapping)
        rows = batch[f"{side}_rows"]
        part = Data(
            head=triples.head[rows],
            relation=triples.relation[rows],
            tail=triples.tail[rows],
        )
        head = part.head.unsqueeze(1)
        relation = part.relation.unsqueeze(1)
        tail = part.tail.unsqueeze(1)
        shape = len(rows), self.negatives[side]
        entities = torch.randint(self.encoder.num_entities, shape, device=rows.device)
        if side == "tail" or self.inverse_relations:
            samples = head, relation, entities
            scores = self.encoder.tail_scores(part, torch.cat([tail, entities], 1))
            positive = scores[:, :1]
            scores = scores[:, 1:]
        else:
            samples = entities, relation.expand(shape), tail.expand(shape)
            positive, scores = self.encoder.sampled_scores(part, samples)
        losses = self._losses(positive, self._filter(scores, samples, batch))
        return losses, triples.weight[rows]

    def _losses(self, positive: Tensor, scores: Tensor) -> Tensor:
        """Losses `[triples]` of the scores of triples and of their samples."""
        loss = SAMPLE_LOSSES[self.loss]
        return loss(positive, scores, self.margin, self.temperature)

    def _filter(self, scores: Tensor, samples: Columns, batch: Data) -> Tensor:
        """Scores of samples; -inf for training triples if `filtered`."""
        if not self.filtered:
            return scores
        numbers = triple_numbers(*samples, self.encoder.num_entities)
        position = torch.searchsorted(batch.known, numbers)
        position = position.clamp(max=len(batch.known) - 1)
        return scores.where(batch.known[position] != numbers, -torch.inf)


def batch_triples(batch: Data) -> Data:
    """Triples of a batch of queries."""
    row = batch.query
    return Data(head=batch.head[row], relation=batch.relation[row], tail=batch.tail)

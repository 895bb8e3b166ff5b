"""Floors of knowledge-graph completion, which need no learning."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.datasets.triples import KnownTails
from curvlab.errors import UsageError
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import FromData


class RelationFrequency(FlatEncoder, TripleScorer):
    """score(h, r, t) = how many training triples have this relation and this tail, times a scale.

    The head is ignored. The scale is positive and changes no rank; it is there to be learned, so
    that a floor is a run like any other. The counts take relations times entities numbers.

    Paper: A floor that takes no learning: tails by how often the relation has them.
    """

    def __init__(
        self, num_entities: int, num_relations: int, train_triples: FromData[Tensor]
    ) -> None:
        super().__init__()
        _, relation, tail = train_triples
        pair = relation * num_entities + tail
        counts = torch.bincount(pair, minlength=num_relations * num_entities)
        counts = counts.view(num_relations, num_entities)
        self.counts = nn.Buffer(counts.to(torch.get_default_dtype()))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.dim_out = num_entities

    @property
    def num_entities(self) -> int:
        return self.counts.shape[1]

    @property
    def entity_points(self) -> Tensor:
        raise UsageError("a floor does not embed entities: export another model's embeddings")

    def forward(self, batch: Data) -> Tensor:
        return self.counts[batch.relation]

    def scores(self, batch: Data, candidates: Tensor | None = None) -> Tensor:
        counts = self(batch)
        if candidates is not None:
            counts = counts[:, candidates]
        return self.log_scale.exp() * counts


class ReverseLookup(RelationFrequency):
    """Rank tails t with a training triple (t, r, h) first, then by relation frequency.

    Finds symmetric relations, a third of WN18RR's test triples.

    Paper: A floor that takes no learning: tails whose reversed triple is known, then by frequency.
    """

    def __init__(
        self, num_entities: int, num_relations: int, train_triples: FromData[Tensor]
    ) -> None:
        super().__init__(num_entities, num_relations, train_triples)
        head, relation, tail = train_triples
        self.known_heads = KnownTails(tail, relation, head, num_relations)
        self.bonus = float(self.counts.max()) + 1

    def forward(self, batch: Data) -> Tensor:
        self.known_heads = self.known_heads.to(batch.head.device)
        query, tail = self.known_heads.lookup(batch.head, batch.relation)
        bonus = self.counts.new_tensor(self.bonus)
        return super().forward(batch).index_put((query, tail), bonus, accumulate=True)

"""Rankings that take no learning, which every model has to beat."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.datasets.triples import KnownTails
from curvlab.manifolds import Euclidean
from curvlab.models.triple_scorer import TripleScorer


class RelationFrequency(TripleScorer):
    """score(h, r, t) = how many training triples have this relation and this tail, times a scale.

    The head is ignored. The scale is positive and changes no rank; it is there to be learned, so
    that a floor is a run like any other. The counts take relations times entities numbers.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        train_triples: head, relation and tail `[3, triples]`.
    """

    def __init__(self, num_entities: int, num_relations: int, train_triples: Tensor) -> None:
        super().__init__()
        _, relation, tail = train_triples
        counts = torch.bincount(
            relation * num_entities + tail, minlength=num_relations * num_entities
        )
        self.register_buffer(
            "counts", counts.view(num_relations, num_entities).to(torch.get_default_dtype())
        )
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.space = Euclidean()

    counts: Tensor

    @property
    def manifold_out(self) -> Euclidean:
        """Flat space."""
        return self.space

    @property
    def dim_out(self) -> int:
        """A row of counts."""
        return self.counts.shape[1]

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.counts.shape[1]

    def forward(self, batch: Data) -> Tensor:
        """Counts of all tails `[queries, entities]`."""
        return self.counts[batch.relation]

    def scores(self, batch: Data) -> Tensor:
        """Scaled counts `[queries, entities]`."""
        return self.log_scale.exp() * self(batch)


class ReverseLookup(RelationFrequency):
    """First the tails t of which (t, r, h) is a training triple, then by relation frequency.

    Finds symmetric relations, a third of WN18RR's test triples.
    """

    def __init__(self, num_entities: int, num_relations: int, train_triples: Tensor) -> None:
        super().__init__(num_entities, num_relations, train_triples)
        head, relation, tail = train_triples
        self.reversed = KnownTails(tail, relation, head, num_relations)
        self.ahead = float(self.counts.max()) + 1

    def forward(self, batch: Data) -> Tensor:
        """Counts of all tails, those of reversed triples ahead of all others."""
        self.reversed = self.reversed.to(batch.head.device)
        query, tail = self.reversed.of(batch.head, batch.relation)
        return (
            super()
            .forward(batch)
            .index_put((query, tail), self.counts.new_tensor(self.ahead), accumulate=True)
        )

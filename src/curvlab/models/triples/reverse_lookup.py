"""A floor that takes no learning: tails whose reversed triple is known, then by frequency."""

from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import KnownTails
from curvlab.models.triples.relation_frequency import RelationFrequency
from curvlab.options import FromData


class ReverseLookup(RelationFrequency):
    """First the tails t of which (t, r, h) is a training triple, then by relation frequency.

    Finds symmetric relations, a third of WN18RR's test triples.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        train_triples: head, relation and tail `[3, triples]`.
    """

    def __init__(
        self, num_entities: int, num_relations: int, train_triples: FromData[Tensor]
    ) -> None:
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

"""A floor that takes no learning: tails by how often the relation has them."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import Euclidean
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import FromData


class RelationFrequency(TripleScorer):
    """score(h, r, t) = how many training triples have this relation and this tail, times a scale.

    The head is ignored. The scale is positive and changes no rank; it is there to be learned, so
    that a floor is a run like any other. The counts take relations times entities numbers.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        train_triples: head, relation and tail `[3, triples]`.
    """

    def __init__(
        self, num_entities: int, num_relations: int, train_triples: FromData[Tensor]
    ) -> None:
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

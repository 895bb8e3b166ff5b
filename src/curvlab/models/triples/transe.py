"""TransE, "Translating embeddings for modeling multi-relational data" (Bordes et al. 2013)."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.layers.dropout import Dropout as DropoutLayer
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import TripleScorer, table
from curvlab.models.triples.distances import squared_distances
from curvlab.options import Dropout, PositiveInt


class TransE(FlatEncoder, TripleScorer):
    """score(h, r, t) = -|h + r - t|_p: the relation is a translation.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        norm: p of the distance; 2 is a matrix product, 1 takes entities times dim a query.
        dropout: of head and relation.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        norm: Literal[1, 2] = 2,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.norm = norm
        self.drop = DropoutLayer(dropout)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    @property
    def entity_points(self) -> Tensor:
        """The table of embeddings."""
        return self.entities.weight

    def forward(self, batch: Data) -> Tensor:
        """The place of the tail, `[queries, dim]`."""
        return self.drop(self.entities(batch.head)) + self.drop(self.relations(batch.relation))

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`."""
        return self.row_scores(self(batch), self.entities.weight)

    def row_scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        """Minus distances `[queries, rows]`."""
        if self.norm == 1:
            return -torch.cdist(queries, rows.to(queries.dtype), p=1)
        return -squared_distances(queries, rows).sqrt()

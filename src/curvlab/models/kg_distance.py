"""TransE and RotatE: a relation moves the head to where the tail should be."""

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.dropout import Dropout
from curvlab.models.encoder import FlatEncoder
from curvlab.models.kg_bilinear import check_even, complex_product
from curvlab.models.triple_scorer import TripleScorer, table


class TransE(FlatEncoder, TripleScorer):
    """score(h, r, t) = -|h + r - t|_p.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        norm: p; 2 is a matrix product, 1 takes entities times dim a query.
        dropout: of head and relation.

    Source: Bordes et al. 2013, "Translating embeddings for modeling multi-relational data".
    """

    def __init__(
        self, num_entities: int, num_relations: int, dim: int, norm: int, dropout: float
    ) -> None:
        super().__init__()
        self.dim = dim
        if norm not in (1, 2):
            raise UsageError(f"model.norm={norm} must be 1 or 2")
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.norm = norm
        self.drop = Dropout(dropout)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    def forward(self, batch: Data) -> Tensor:
        """The place of the tail, `[queries, dim]`."""
        return self.drop(self.entities(batch.head)) + self.drop(self.relations(batch.relation))

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`."""
        place = self(batch)
        if self.norm == 1:
            return -torch.cdist(place, self.entities.weight.to(place.dtype), p=1)
        return -squared_distances(place, self.entities.weight).sqrt()


class RotatE(FlatEncoder, TripleScorer):
    """score(h, r, t) = -|h o r - t| of complex vectors, r_i = exp(i theta_i).

    The first half of an embedding is the real, the second the imaginary part; the distance is the
    Euclidean one, as in PyTorch Geometric, for which a matrix product is enough (the authors add
    up the moduli).

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: real width of the embeddings, twice the number of angles.
        dropout: of the head.

    Source: Sun et al. 2019, "RotatE: knowledge graph embedding by relational rotation in complex
    space".
    """

    def __init__(self, num_entities: int, num_relations: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        check_even(dim)
        self.entities = table(num_entities, dim)
        self.angles = nn.Embedding(num_relations, dim // 2)
        nn.init.uniform_(self.angles.weight, -math.pi, math.pi)
        self.drop = Dropout(dropout)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    def forward(self, batch: Data) -> Tensor:
        """The rotated head, `[queries, dim]`."""
        angle = self.angles(batch.relation)
        rotation = torch.cat([angle.cos(), angle.sin()], -1)
        return complex_product(self.drop(self.entities(batch.head)), rotation)

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`."""
        return -squared_distances(self(batch), self.entities.weight).sqrt()


# Below it the root's derivative would be large; a distance of 1e-6 is none.
SMALLEST = 1e-12


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_i - y_j|^2 `[n, m]` of `[n, dim]` and `[m, dim]`, by a matrix product, above 0.

    Not under autocast, whose rounding would be larger than the distances of close points.
    """
    with torch.autocast(x.device.type, enabled=False):
        product = x @ y.T
    lengths = x.square().sum(-1, keepdim=True), y.square().sum(-1)
    return (lengths[0] + lengths[1] - 2 * product).clamp(min=SMALLEST)

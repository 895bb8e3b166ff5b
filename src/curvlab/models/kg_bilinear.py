"""DistMult and ComplEx: scores are bilinear in head and tail, one matrix product for all tails."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.layers.dropout import Dropout
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer, table


class DistMult(FlatEncoder, DotProductScorer):
    """score(h, r, t) = sum_i h_i r_i t_i, the same for (t, r, h).

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        dropout: of head and relation.

    Source: Yang et al. 2015, "Embedding entities and relations for learning and inference in
    knowledge bases".
    """

    def __init__(self, num_entities: int, num_relations: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.drop = Dropout(dropout)

    @property
    def candidates(self) -> Tensor:
        """Embeddings of all entities."""
        return self.entities.weight

    def forward(self, batch: Data) -> Tensor:
        """H r, `[queries, dim]`."""
        head = self.drop(self.entities(batch.head))
        return self.combine(head, self.drop(self.relations(batch.relation)))

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """The vector whose product with a tail is the score."""
        return head * relation


class ComplEx(DistMult):
    """score(h, r, t) = Re sum_i h_i r_i conj(t_i) of complex vectors of dim / 2 numbers.

    The first half of an embedding is the real, the second the imaginary part.

    Source: Trouillon et al. 2016, "Complex embeddings for simple link prediction".
    """

    def __init__(self, num_entities: int, num_relations: int, dim: int, dropout: float) -> None:
        check_even(dim)
        super().__init__(num_entities, num_relations, dim, dropout)

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """Real and imaginary part of h r, whose product with those of t is Re(h r conj(t))."""
        return complex_product(head, relation)


def complex_product(x: Tensor, y: Tensor) -> Tensor:
    """Product of complex numbers; halves of the last axis are their real and imaginary parts."""
    (a, b), (c, d) = x.chunk(2, -1), y.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def check_even(dim: int) -> None:
    """Refuse a width that has no halves.

    Raises:
        UsageError: It is odd.
    """
    if dim % 2:
        raise UsageError(f"model.dim={dim} must be even: its halves are one complex vector")

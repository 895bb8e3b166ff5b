"""Models of knowledge graphs in flat space: DistMult, ComplEx, TransE, RotatE."""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.dropout import Dropout as DropoutLayer
from curvlab.manifolds.products import product
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer, TripleScorer, check_even, table
from curvlab.options import Dropout, PositiveInt

SMALLEST = 1e-12
"""Of a squared distance: below it the derivative of the root would be large."""


class DistMult(FlatEncoder, DotProductScorer):
    """score(h, r, t) = sum_i h_i r_i t_i, the same for (t, r, h).

    Args:
        dim: width of the embeddings.
        dropout: of head and relation.

    Paper: DistMult, "Embedding entities and relations for learning and inference in knowledge
    bases". Yang et al. 2015, arXiv:1412.6575.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.2,
    ) -> None:
        super().__init__()
        self.dim_out = dim
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.drop = DropoutLayer(dropout)

    @property
    def candidates(self) -> Tensor:
        """Embeddings of all entities."""
        return self.entities.weight

    def forward(self, batch: Data) -> Tensor:
        """The vectors `[queries, dim]` whose products with a tail are the scores."""
        head = self.drop(self.entities(batch.head))
        return self.combine(head, self.drop(self.relations(batch.relation)))

    def moduli(self, batch: Data) -> Tensor:
        """Absolute values of the three embeddings."""
        head, tail = self.entities(batch.head), self.entities(batch.tail)
        return self.modulus(torch.stack([head, self.relations(batch.relation), tail]))

    def modulus(self, numbers: Tensor) -> Tensor:
        """Absolute values."""
        return numbers.abs()

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """H r."""
        return head * relation


class ComplEx(DistMult):
    """score(h, r, t) = Re sum_i h_i r_i conj(t_i) of complex vectors of dim / 2 numbers.

    The first half of an embedding is the real, the second the imaginary part.

    Args:
        **options: those of `DistMult`; the width is even.

    Paper: ComplEx, "Complex embeddings for simple link prediction". Trouillon et al. 2016,
    arXiv:1606.06357.
    """

    def __init__(self, num_entities: int, num_relations: int, **options: Any) -> None:
        super().__init__(num_entities, num_relations, **options)
        check_even(self.dim_out)

    def modulus(self, numbers: Tensor) -> Tensor:
        """Moduli of the complex numbers, `[..., dim / 2]`."""
        return torch.linalg.vector_norm(torch.stack(numbers.chunk(2, -1)), dim=0)

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """Real and imaginary part of h r, whose product with those of t is Re(h r conj(t))."""
        return complex_product(head, relation)


class _DistanceScorer(FlatEncoder, TripleScorer):
    """score(h, r, t) = -|h moved by r - t|."""

    norm = 2

    def __init__(self, num_entities: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim_out = dim
        self.entities = table(num_entities, dim)
        self.drop = DropoutLayer(dropout)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    @property
    def entity_points(self) -> Tensor:
        """The table of embeddings."""
        return self.entities.weight

    def triple_scores(self, batch: Data) -> Tensor:
        """Minus distances `[triples]`."""
        away = self(batch) - self.entities(batch.tail)
        return -torch.linalg.vector_norm(away, self.norm, dim=-1)

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`, by a matrix product."""
        x, y = self(batch), self.entities.weight
        squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1)
        return -(squares - 2 * product(x, y.T)).clamp(min=SMALLEST).sqrt()


class TransE(_DistanceScorer):
    """score(h, r, t) = -|h + r - t|_p: the relation is a translation.

    Args:
        dim: width of the embeddings.
        norm: p of the distance; 2 is a matrix product, 1 takes entities times dim a query.
        dropout: of head and relation.

    Paper: TransE, "Translating embeddings for modeling multi-relational data" (Bordes et al. 2013).
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        norm: Literal[1, 2] = 2,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(num_entities, dim, dropout)
        self.relations = table(num_relations, dim)
        self.norm = norm

    def forward(self, batch: Data) -> Tensor:
        """The place of the tail, `[queries, dim]`."""
        return self.drop(self.entities(batch.head)) + self.drop(self.relations(batch.relation))

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`."""
        if self.norm == 2:
            return super().scores(batch)
        x = self(batch)
        return -torch.cdist(x, self.entities.weight.to(x.dtype), p=1)


class RotatE(_DistanceScorer):
    """score(h, r, t) = -|h o r - t| of complex vectors, r_i = exp(i theta_i): a rotation.

    The first half of an embedding is the real, the second the imaginary part; the distance is the
    Euclidean one, as in PyTorch Geometric, for which a matrix product is enough (the authors add
    up the moduli).

    Args:
        dim: width of the embeddings, even: real and imaginary parts.
        dropout: of the head.

    Paper: RotatE, "Knowledge graph embedding by relational rotation in complex space". Sun et al.
    2019, arXiv:1902.10197.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.0,
    ) -> None:
        check_even(dim)
        super().__init__(num_entities, dim, dropout)
        self.angles = nn.Embedding(num_relations, dim // 2)
        nn.init.uniform_(self.angles.weight, -math.pi, math.pi)

    def forward(self, batch: Data) -> Tensor:
        """The rotated head, `[queries, dim]`."""
        angle = self.angles(batch.relation)
        rotation = torch.cat([angle.cos(), angle.sin()], -1)
        return complex_product(self.drop(self.entities(batch.head)), rotation)


def complex_product(x: Tensor, y: Tensor) -> Tensor:
    """Product of complex numbers; halves of the last axis are their real and imaginary parts."""
    (a, b), (c, d) = x.chunk(2, -1), y.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)

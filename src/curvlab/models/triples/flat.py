"""Models of knowledge graphs in flat space: DistMult, ComplEx, TransE, RotatE."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch_geometric.data import Data

from curvlab.layers.elementwise import Dropout as DropoutLayer
from curvlab.manifolds.kernels import upcast_half
from curvlab.manifolds.products import full_precision, product
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer, TripleScorer, check_even, table
from curvlab.options import Dropout, PositiveFloat, PositiveInt

SMALLEST = 1e-12
"""Smallest squared distance: below it the derivative of the root would be large."""


class _FlatScorer(FlatEncoder, TripleScorer):
    """Embeddings of entities in flat space, with dropout.

    Args:
        dim: width of the embeddings; even if its halves are the real and imaginary parts.
        dropout: of the head, and of the relation unless that has its own.
        relation_dropout: of the relation; null: as `dropout`.
        tail_dropout: apply `dropout` to tails too.
        init: start with embeddings uniform in [-init, init]; null: Xavier uniform.
        sparse: update the rows of a batch only, with optimizer=adagrad and negative sampling.
    """

    is_complex = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.0,
        relation_dropout: Dropout | None = None,
        tail_dropout: bool = False,
        init: PositiveFloat | None = None,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        if self.is_complex:
            check_even(dim)
        self.dim_out = dim
        self.entities = table(num_entities, dim, init, sparse)
        self.drop = DropoutLayer(dropout)
        self.drop_relation = DropoutLayer(dropout if relation_dropout is None else relation_dropout)
        self.drop_tail = DropoutLayer(dropout if tail_dropout else 0.0)
        if num_relations:  # none where they are not tables of this width
            self.relations = table(num_relations, dim, init, sparse)

    def tails(self, index: Tensor | None = None) -> Tensor:
        return self.drop_tail(self.entities.weight if index is None else self.entities(index))


class DistMult(_FlatScorer, DotProductScorer):
    """score(h, r, t) = sum_i h_i r_i t_i, the same for (t, r, h).

    Args:
        reciprocal: give an inverse relation its own embedding; false: that of `invert`.

    Paper: DistMult, "Embedding entities and relations for learning and inference in knowledge
    bases". Yang et al. 2015, arXiv:1412.6575.

    Default: dropout 0.2, as in CAT's comparison. The paper has none.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.2,
        relation_dropout: Dropout | None = None,
        tail_dropout: bool = False,
        init: PositiveFloat | None = None,
        reciprocal: bool = True,
        sparse: bool = False,
    ) -> None:
        own = num_relations if reciprocal else -(-num_relations // 2)
        dropouts = dropout, relation_dropout, tail_dropout
        super().__init__(num_entities, own, dim, *dropouts, init, sparse)
        self.reciprocal = reciprocal

    def forward(self, batch: Data) -> Tensor:
        head, own = self.drop(self.entities(batch.head)), self.relations.num_embeddings
        relation = self.drop_relation(self.relations(batch.relation % own))
        inverse = (batch.relation >= own).unsqueeze(-1)
        return self.combine(head, torch.where(inverse, self.invert(relation), relation))

    def moduli(self, batch: Data) -> Tensor:
        head, tail = self.entities(batch.head), self.entities(batch.tail)
        relation = self.relations(batch.relation % self.relations.num_embeddings)
        return self.modulus(torch.stack([head, relation, tail]))

    def modulus(self, numbers: Tensor) -> Tensor:
        return numbers.abs()

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """H r."""
        return head * relation

    def invert(self, relation: Tensor) -> Tensor:
        """The embedding r' of the inverse relation: score(h, r, t) = score(t, r', h)."""
        return relation


class ComplEx(DistMult):
    """score(h, r, t) = Re sum_i h_i r_i conj(t_i) of complex vectors of dim / 2 numbers.

    The first half of an embedding is the real, the second the imaginary part.

    Paper: ComplEx, "Complex embeddings for simple link prediction". Trouillon et al. 2016,
    arXiv:1606.06357.

    Default: dropout 0.2, as in CAT's comparison. The paper has none.
    """

    is_complex = True

    def modulus(self, numbers: Tensor) -> Tensor:
        return torch.linalg.vector_norm(torch.stack(numbers.chunk(2, -1)), dim=0)

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        return complex_product(head, relation)

    def invert(self, relation: Tensor) -> Tensor:
        real, imaginary = relation.chunk(2, -1)
        return torch.cat([real, -imaginary], -1)


class _DistanceScorer(_FlatScorer):
    """score(h, r, t) = -|h moved by r - t|, where a relation moves all points by an isometry."""

    @abstractmethod
    def move(self, x: Tensor, relation: Tensor, back: bool = False) -> Tensor:
        """Points `[queries, dim]` moved by the relations `[queries]`, or back."""

    def forward(self, batch: Data) -> Tensor:
        return self.move(self.drop(self.entities(batch.head)), batch.relation)

    def triple_scores(self, batch: Data) -> Tensor:
        away = self(batch) - self.tails(batch.tail)
        return -torch.linalg.vector_norm(away, dim=-1)

    def sampled_scores(
        self, triples: Data, drawn: Sequence[Tensor], both_ends: bool = False
    ) -> tuple[Tensor, Tensor]:
        """One row of the entities for each sample: queries are made once a triple, at both ends."""
        head, _, tail = drawn
        if both_ends or any(p.p for p in (self.drop, self.drop_relation, self.drop_tail)):
            return super().sampled_scores(triples, drawn, both_ends)
        replaced = head != triples.head.unsqueeze(1)
        numbers = torch.cat(
            [triples.head, triples.tail, torch.where(replaced, head, tail).view(-1)]
        )
        x, y, ends = self.entities(numbers).split([len(head), len(head), head.numel()])
        query, back = self.move(x, triples.relation), self.move(y, triples.relation, back=True)
        # A product with 0 and 1 chooses exactly; its derivative makes fewer arrays than `where`'s.
        chosen = torch.stack([~replaced, replaced], -1).to(x.dtype)
        away = product(chosen, torch.stack([query, back], 1)) - ends.view(*head.shape, -1)
        norm = torch.linalg.vector_norm
        return -norm(query - y, dim=-1).unsqueeze(1), -norm(away, dim=-1)

    def scores(self, batch: Data, among: Tensor | None = None) -> Tensor:
        x, y = self(batch), self.tails(among)
        squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1)
        return -(squares - 2 * product(x, y.T)).clamp(min=SMALLEST).sqrt()

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:

        def scores(rows: slice, queries: Tensor, tails: Tensor) -> Tensor:
            with torch.autocast(queries.device.type, enabled=False):
                distances: Tensor = _Distances.apply(upcast_half(queries[rows]), upcast_half(tails))
            return -distances

        return scores, (self(batch), self.tails())


class _Distances(Function):
    """Euclidean distances `[n, m]` of `[n, dim]` and `[m, dim]`, as in `scores`, and derivatives.

    One array is made of all pairs, and one of their gradients.
    """

    @staticmethod
    @full_precision()
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        distance = torch.addmm(y.square().sum(-1), x, y.T, alpha=-2)
        distance.add_(x.square().sum(-1, keepdim=True)).clamp_(min=SMALLEST).sqrt_()
        ctx.save_for_backward(x, y, distance)
        return distance

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, y, distance = ctx.saved_tensors
        weight = grads[0] / distance
        weight.masked_fill_(distance <= SMALLEST**0.5, 0)
        grad_x = torch.addmm(weight.sum(1, keepdim=True) * x, weight, y, alpha=-1)
        grad_y = torch.addmm(weight.sum(0).unsqueeze(1) * y, weight.T, x, alpha=-1)
        return grad_x, grad_y


class TransE(_DistanceScorer):
    """score(h, r, t) = -|h + r - t|: the relation is a translation.

    Paper: TransE, "Translating embeddings for modeling multi-relational data" (Bordes et al. 2013).
    """

    def move(self, x: Tensor, relation: Tensor, back: bool = False) -> Tensor:
        shift = self.drop_relation(self.relations(relation))
        return x - shift if back else x + shift


class RotatE(_DistanceScorer):
    """score(h, r, t) = -|h o r - t| of complex vectors, r_i = exp(i theta_i): a rotation.

    The first half of an embedding is the real, the second the imaginary part; the distance is the
    Euclidean one, as in PyTorch Geometric, for which a matrix product is enough (the authors add
    up the moduli).

    Paper: RotatE, "Knowledge graph embedding by relational rotation in complex space". Sun et al.
    2019, arXiv:1902.10197.
    """

    is_complex = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.0,
        tail_dropout: bool = False,
        init: PositiveFloat | None = None,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_entities, 0, dim, dropout, None, tail_dropout, init, sparse)
        self.angles = nn.Embedding(num_relations, dim // 2, sparse=sparse)
        nn.init.uniform_(self.angles.weight, -math.pi, math.pi)

    def move(self, x: Tensor, relation: Tensor, back: bool = False) -> Tensor:
        angle = self.angles(relation)
        if back:
            angle = -angle
        return complex_product(x, torch.cat([angle.cos(), angle.sin()], -1))


def complex_product(x: Tensor, y: Tensor) -> Tensor:
    """Product of complex numbers; halves of the last axis are their real and imaginary parts."""
    (a, b), (c, d) = x.chunk(2, -1), y.chunk(2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], -1)

"""Models of knowledge graphs in flat space: DistMult, ComplEx, TransE, RotatE."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypedDict, Unpack

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch_geometric.data import Data

from curvlab.layers.elementwise import Dropout as DropoutLayer
from curvlab.manifolds.kernels import upcast_half
from curvlab.manifolds.matrix_products import full_precision, product
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer, TripleScorer, check_even, table
from curvlab.options import Dropout, EmbeddingInit, PositiveFloat, PositiveInt

SMALLEST = 1e-12
"""Smallest squared distance. Below it the derivative of the root would be large."""


class TableOptions(TypedDict, total=False):
    """Options of the tables of embeddings, see `_FlatScorer`."""

    tail_dropout: bool
    init: EmbeddingInit
    reciprocal: bool
    sparse: bool


class _FlatScorer(FlatEncoder, TripleScorer):
    """Embeddings of entities in flat space, with dropout.

    Args:
        dim: width of the embeddings; even if its halves are the real and imaginary parts.
        dropout: dropout of the head, and of the relation if `relation_dropout` is null.
        relation_dropout: dropout of the relation; null: `dropout`.
        tail_dropout: apply `dropout` to tails as well.
        init: initial embeddings: x, uniform in [-x, x]; [low, high], uniform on that interval;
            `xavier_normal`; null: Xavier uniform.
        reciprocal: give an inverse relation its own parameters; false: its relation's, inverted.
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
        init: EmbeddingInit = None,
        reciprocal: bool = True,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        if self.is_complex:
            check_even(dim)
        if relation_dropout is None:
            relation_dropout = dropout
        self.dim_out = dim
        self.reciprocal = reciprocal
        self.relation_rows = num_relations if reciprocal else -(-num_relations // 2)
        self.entities = table(num_entities, dim, init, sparse)
        self.drop = DropoutLayer(dropout)
        self.drop_relation = DropoutLayer(relation_dropout)
        self.drop_tail = DropoutLayer(dropout if tail_dropout else 0.0)
        self.add_relations(dim, init, sparse)

    def add_relations(self, dim: int, init: EmbeddingInit, sparse: bool) -> None:
        """Make the parameters of relations."""
        self.relations = table(self.relation_rows, dim, init, sparse)

    def tails(self, index: Tensor | None = None) -> Tensor:
        tails = self.entities.weight if index is None else self.entities(index)
        return self.drop_tail(tails)

    def is_inverse(self, relation: Tensor) -> Tensor:
        """Whether relations are inverses without parameters, `[queries, 1]`."""
        return (relation >= self.relation_rows).unsqueeze(-1)

    def modulus(self, numbers: Tensor) -> Tensor:
        """Moduli of the real or complex numbers of the last axis."""
        if not self.is_complex:
            return numbers.abs()
        parts = torch.stack(numbers.chunk(2, -1))
        return torch.linalg.vector_norm(parts, dim=0)

    def table_moduli(self) -> dict[str, Tensor]:
        tables = {"entities": self.entities.weight, "relations": self.relations.weight}
        return {name: self.modulus(weight) for name, weight in tables.items()}


class DistMult(_FlatScorer, DotProductScorer):
    """score(h, r, t) = sum_i h_i r_i t_i, the same for (t, r, h).

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
        **tables: Unpack[TableOptions],
    ) -> None:
        super().__init__(num_entities, num_relations, dim, dropout, relation_dropout, **tables)

    def forward(self, batch: Data) -> Tensor:
        row = batch.relation % self.relation_rows
        head = self.drop(self.entities(batch.head))
        relation = self.drop_relation(self.relations(row))
        is_inverse = self.is_inverse(batch.relation)
        relation = torch.where(is_inverse, self.invert(relation), relation)
        return self.combine(head, relation)

    def moduli(self, batch: Data) -> Tensor:
        head = self.entities(batch.head)
        tail = self.entities(batch.tail)
        relation = self.relations(batch.relation % self.relation_rows)
        return self.modulus(torch.stack([head, relation, tail]))

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """The embedding of the query (head, relation)."""
        return head * relation

    def invert(self, relation: Tensor) -> Tensor:
        """The embedding r' of the inverse relation, with score(h, r, t) = score(t, r', h)."""
        return relation


class ComplEx(DistMult):
    """score(h, r, t) = Re sum_i h_i r_i conj(t_i) of complex vectors of dim / 2 numbers.

    The first half of an embedding is the real, the second the imaginary part.

    Paper: ComplEx, "Complex embeddings for simple link prediction". Trouillon et al. 2016,
    arXiv:1606.06357.

    Default: dropout 0.2, as in CAT's comparison. The paper has none.
    """

    is_complex = True

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        return complex_product(head, relation)

    def invert(self, relation: Tensor) -> Tensor:
        real, imaginary = relation.chunk(2, -1)
        return torch.cat([real, -imaginary], -1)


class _DistanceScorer(_FlatScorer):
    """score(h, r, t) = -|h moved by r - t|, where a relation moves all points by an isometry.

    Args:
        norm: 2, the Euclidean distance; 1, the sum of the moduli of coordinates.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.0,
        relation_dropout: Dropout | None = None,
        norm: Literal[1, 2] = 2,
        **tables: Unpack[TableOptions],
    ) -> None:
        super().__init__(num_entities, num_relations, dim, dropout, relation_dropout, **tables)
        self.norm = norm

    @abstractmethod
    def move(self, x: Tensor, relation: Tensor, backward: bool = False) -> Tensor:
        """Move points `[queries, dim]` by the relations `[queries]`, forward or backward."""

    def direction(self, relation: Tensor, backward: bool) -> Tensor:
        """1 where relations move points forward, -1 where backward, `[queries, 1]`."""
        is_backward = self.is_inverse(relation) != backward
        return 1 - 2 * is_backward.to(self.entities.weight.dtype)

    def length(self, vectors: Tensor) -> Tensor:
        """Lengths of the last axis."""
        if self.norm == 1:
            return self.modulus(vectors).sum(-1)
        return torch.linalg.vector_norm(vectors, dim=-1)

    def forward(self, batch: Data) -> Tensor:
        head = self.drop(self.entities(batch.head))
        return self.move(head, batch.relation)

    def triple_scores(self, batch: Data) -> Tensor:
        return -self.length(self(batch) - self.tails(batch.tail))

    @property
    def has_dropout(self) -> bool:
        layers = self.drop, self.drop_relation, self.drop_tail
        return any(layer.p > 0 for layer in layers)

    def tail_scores(self, triples: Data, tails: Tensor) -> Tensor:
        """Scores of `TripleScorer.tail_scores`. Without dropout, each query is computed once."""
        if self.has_dropout:
            return super().tail_scores(triples, tails)
        queries = self(triples).unsqueeze(1)
        return -self.length(queries - self.entities(tails))

    def sampled_scores(
        self, triples: Data, samples: Sequence[Tensor], both_ends: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Scores of `TripleScorer.sampled_scores`, by one row of the entities for each sample.

        Each triple moves its head forward once and its tail backward once.
        """
        head, _, tail = samples
        if both_ends or self.has_dropout:
            return super().sampled_scores(triples, samples, both_ends)
        is_head = head != triples.head.unsqueeze(1)
        entity = torch.where(is_head, head, tail)
        rows = self.entities(torch.cat([triples.head, triples.tail, entity.view(-1)]))
        x, y, sample = rows.split([len(head), len(head), entity.numel()])
        forward = self.move(x, triples.relation)
        backward = self.move(y, triples.relation, backward=True)
        # A product with zeros and ones selects exactly; its gradient needs less memory than
        # that of `where`.
        selection = torch.stack([~is_head, is_head], -1).to(x.dtype)
        end = product(selection, torch.stack([forward, backward], 1))
        scores = -self.length(forward - y).unsqueeze(1)
        return scores, -self.length(end - sample.view(*head.shape, -1))

    def summed_distances(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances `[n, m]` by norm 1 of points `[n, dim]` and `[m, dim]`."""
        if not self.is_complex:
            return torch.cdist(x, y, p=1.0)
        distances: Tensor = _SummedModuli.apply(x, y)
        return distances

    def scores(self, batch: Data, candidates: Tensor | None = None) -> Tensor:
        x = self(batch)
        y = self.tails(candidates)
        if self.norm == 1:
            return -self.summed_distances(x, y)
        squares = x.square().sum(-1, keepdim=True) + y.square().sum(-1)
        squared_distances = squares - 2 * product(x, y.T)
        return -squared_distances.clamp(min=SMALLEST).sqrt()

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        distances = self.summed_distances if self.norm == 1 else _Distances.apply

        def scores(rows: slice, queries: Tensor, tails: Tensor) -> Tensor:
            x = upcast_half(queries[rows])
            y = upcast_half(tails)
            with torch.autocast(queries.device.type, enabled=False):
                result: Tensor = distances(x, y)
            return -result

        return scores, (self(batch), self.tails())


class _Distances(Function):
    """Euclidean distances `[n, m]` of points `[n, dim]` and `[m, dim]`, as in `scores`.

    The forward pass allocates one array of all pairs, and so does the backward pass.
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


class _SummedModuli(Function):
    """Distances d(x, y) = sum_i |x_i - y_i| of complex vectors, `[n, dim]` and `[m, dim]`.

    One coordinate is computed at a time: an array of all pairs and coordinates would not fit into
    memory. Shape: `[n, m]`.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        total = x.new_zeros(len(x), len(y))
        for real, imaginary in _differences(x, y):
            total += torch.hypot(real, imaginary)
        ctx.save_for_backward(x, y)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        columns_x = []
        columns_y = []
        for real, imaginary in _differences(x, y):
            modulus = torch.hypot(real, imaginary)
            weight = (grads[0] / modulus).masked_fill_(modulus == 0, 0)
            slopes = weight * real, weight * imaginary
            columns_x.append([slope.sum(1) for slope in slopes])
            columns_y.append([-slope.sum(0) for slope in slopes])
        return _stack(columns_x), _stack(columns_y)


def _differences(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Real and imaginary parts `[n, m]` of the differences of each coordinate."""
    x_real, x_imaginary = x.chunk(2, -1)
    y_real, y_imaginary = y.chunk(2, -1)
    for i in range(x_real.shape[1]):
        real = x_real[:, i : i + 1] - y_real[:, i]
        imaginary = x_imaginary[:, i : i + 1] - y_imaginary[:, i]
        yield real, imaginary


def _stack(columns: Sequence[Sequence[Tensor]]) -> Tensor:
    """Vectors `[n, dim]` from the real and imaginary parts of each coordinate."""
    real, imaginary = zip(*columns, strict=True)
    return torch.cat([torch.stack(real, 1), torch.stack(imaginary, 1)], 1)


class TransE(_DistanceScorer):
    """score(h, r, t) = -|h + r - t|: the relation is a translation.

    Paper: TransE, "Translating embeddings for modeling multi-relational data" (Bordes et al. 2013).
    """

    def move(self, x: Tensor, relation: Tensor, backward: bool = False) -> Tensor:
        row = relation % self.relation_rows
        shift = self.drop_relation(self.relations(row))
        return x + self.direction(relation, backward) * shift


class RotatE(_DistanceScorer):
    """score(h, r, t) = -|h o r - t| of complex vectors, r_i = exp(i theta_i): a rotation.

    The first half of an embedding is the real, the second the imaginary part. By default the
    distance is the Euclidean one, as in PyTorch Geometric, for which a matrix product is enough.
    The paper's is `norm=1`, the sum of the moduli.

    Args:
        angle_scale: angle per unit of a relation's parameter; the authors' code has pi / init.

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
        norm: Literal[1, 2] = 2,
        angle_scale: PositiveFloat = 1.0,
        **tables: Unpack[TableOptions],
    ) -> None:
        self.angle_scale = angle_scale
        super().__init__(num_entities, num_relations, dim, dropout, norm=norm, **tables)

    def add_relations(self, dim: int, init: EmbeddingInit, sparse: bool) -> None:  # noqa: ARG002
        largest = math.pi / self.angle_scale
        self.angles = table(self.relation_rows, dim // 2, [-largest, largest], sparse)

    def table_moduli(self) -> dict[str, Tensor]:
        """Moduli of the entities. The moduli of rotations are 1."""
        return {"entities": self.modulus(self.entities.weight)}

    def move(self, x: Tensor, relation: Tensor, backward: bool = False) -> Tensor:
        row = relation % self.relation_rows
        angle = self.angle_scale * self.angles(row)
        angle = self.direction(relation, backward) * angle
        rotation = torch.cat([angle.cos(), angle.sin()], -1)
        return complex_product(x, rotation)


def complex_product(x: Tensor, y: Tensor) -> Tensor:
    """Product of complex numbers. The halves of the last axis are real and imaginary parts."""
    a, b = x.chunk(2, -1)
    c, d = y.chunk(2, -1)
    real = a * c - b * d
    imaginary = a * d + b * c
    return torch.cat([real, imaginary], -1)

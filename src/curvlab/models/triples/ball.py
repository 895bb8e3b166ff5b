"""Models of knowledge graphs in the Poincare ball: MuRP, RotH, AttH.

A model defines `forward` (the point of a query) and `tails` (the points of tails). The score of
`triple_scores` is -distance^2 + biases. `scores` computes the same scores for all entities, by the
matrix products of `ball_distances`.

Parameters are tangent vectors at the origin. Multiplied by s = sqrt(-kappa), the ball of curvature
kappa is the unit ball: s exp0(v) is exp0(s v) of the unit ball, and Mobius sums commute with the
factor. So all points lie in the unit ball, and distances are divided by s.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import PoincareBall, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.curved_trig import tolerance
from curvlab.models.triple_scorer import TripleScorer, check_even, table
from curvlab.models.triples import ball_distances, ball_scores
from curvlab.models.triples.ball_distances import unique_on_cpu
from curvlab.options import EmbeddingInit, PositiveInt, SpaceMaker

UNIT = -1.0
"""Curvature of the unit ball."""

Factors = Sequence[Tensor]
"""Tensors from which `ball_distances` computes distances."""


class HyperbolicScorer(TripleScorer):
    """score(h, r, t) = -distance(h moved by r, t)^2 + b_h + b_t.

    Args:
        manifold: factory of the ball of all relations, or of one ball for each, with its own
            curvature.
        init: initial embeddings: x, uniform in [-x, x]; [low, high], uniform on that interval;
            `xavier_normal`; null: Xavier uniform.
    """

    curvature_per_relation = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = partial(PoincareBall, learnable=True),
        dim: PositiveInt = 64,
        init: EmbeddingInit = None,
    ) -> None:
        super().__init__()
        components = {"components": num_relations} if self.curvature_per_relation else {}
        self.curvature = manifold(**components).curvature
        self.dim_out = dim
        self.entities = table(num_entities, dim, init)
        self.translations = table(num_relations, dim, init)
        self.head_bias = nn.Parameter(torch.zeros(num_entities))
        self.tail_bias = nn.Parameter(torch.zeros(num_entities))
        self.add_tables(num_relations, dim, init)

    @abstractmethod
    def add_tables(self, relations: int, dim: int, init: EmbeddingInit) -> None:
        """Create further parameters of relations."""

    @property
    def manifold_out(self) -> Stereographic:
        return Stereographic(kappa=UNIT, learnable=False)

    @property
    def entity_points(self) -> Tensor:
        kappa = self.curvature()
        if len(kappa) > 1:  # the relations' scales differ
            kappa = torch.full_like(kappa[:1], UNIT)
        scale = (-kappa).sqrt()
        return unit_point(scale * self.entities.weight)

    def scale(self, batch: Data) -> Tensor:
        """Factor s = sqrt(-kappa) of each query, `[queries, 1]`, or of all, `[1, 1]`."""
        kappa = self.curvature()
        if len(kappa) == self.translations.num_embeddings:
            kappa = kappa.index_select(0, batch.relation)
        return (-kappa).sqrt().view(-1, 1)

    def shifts(self, batch: Data, translations: nn.Embedding) -> Tensor:
        """Points of the unit ball that the queries' relations add, `[queries, dim]`."""

        def points(relation: Tensor) -> Tensor:
            scale = self.scale(Data(relation=relation))
            return unit_point(scale * translations(relation))

        return per_relation(batch, points)

    @property
    def statistic_names(self) -> Sequence[str]:
        return ("at_rim",)

    def statistics(self, batch: Data, points: Tensor | None = None) -> dict[str, Tensor]:
        """`at_rim`: share of the points of queries and tails at the rim of the ball."""
        queries = self(batch) if points is None else points
        tails = HyperbolicScorer.tails(self, batch)
        shares = self.manifold_out.shares(torch.stack([queries, tails]))
        return {"at_rim": shares["at_rim"]}

    def tails(self, batch: Data) -> Tensor:
        """Points of the unit ball `[triples, dim]`, whose distance to the query is the score's."""
        tail = self.entities(batch.tail)
        return unit_point(self.scale(batch) * tail)

    def sort_queries(self, batch: Data) -> Data:
        """Sort by relation: the queries of a relation share its factors and those of entities."""
        order = batch.relation.argsort(stable=True)
        return Data(
            head=batch.head[order],
            relation=batch.relation[order],
            query=order.argsort()[batch.query],
            tail=batch.tail,
        )

    def triple_scores(self, batch: Data) -> Tensor:
        relations, relation_index = unique_on_cpu(batch.relation)
        batch = Data(**batch.to_dict(), relations=relations, relation_index=relation_index)
        with torch.autocast(batch.head.device.type, enabled=False):
            squared = k_space.sqdist(self(batch), self.tails(batch), UNIT)
            squared = squared / self.scale(batch).squeeze(1).square()
        return self.head_bias[batch.head] + self.tail_bias[batch.tail] - squared

    @property
    def rim(self) -> float:
        """Half the largest distance of points from the origin of the unit ball."""
        return math.atanh(1 - tolerance(self.entities.weight.dtype).boundary)

    @abstractmethod
    def query_factors(self, batch: Data) -> Factors:
        """Factors z, p and q of `ball_distances.query_factors`."""

    def tail_factors(self, relations: Tensor) -> Factors:
        """Scales of relations, and `ball_distances.shift_factors` if relations shift tails."""
        return (self.scale(Data(relation=relations)),)

    def scores(self, batch: Data, candidates: Tensor | None = None) -> Tensor:
        """`triple_scores` of all pairs of a query and an entity, never in half precision."""
        scores, sources = self.block_scores(batch, candidates)
        return scores(slice(None), *sources)

    def block_scores(
        self, batch: Data, candidates: Tensor | None = None
    ) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        vectors: Tensor = self.entities.weight
        tail_bias: Tensor = self.tail_bias
        if candidates is not None:
            vectors = self.entities(candidates)
            tail_bias = tail_bias[candidates]
        relations, group = unique_on_cpu(batch.relation)
        with torch.autocast(batch.head.device.type, enabled=False):
            queries = self.query_factors(batch)
            scale, *shifts = self.tail_factors(relations)
        head_bias = self.head_bias.index_select(0, batch.head).unsqueeze(1)
        weight = -self.scale(batch).expand(len(head_bias), 1).square().reciprocal()
        weight_requires_grad = weight.requires_grad
        functions = ball_scores.LIBRARY.functions(vectors)
        compute: Callable[..., Tensor]
        entities: Factors
        if functions is None:
            compute = ball_distances.ball_scores
            entities = ball_distances.polar(vectors)
        else:
            compute = partial(ball_scores.ball_scores, functions)
            entities = (vectors,)

        def scores(
            rows: slice,
            tail_bias: Tensor,
            head_bias: Tensor,
            weight: Tensor,
            z: Tensor,
            p: Tensor,
            q: Tensor,
            *tail_factors: Tensor,
        ) -> Tensor:
            if not weight_requires_grad:
                weight = weight.detach()
            query_factors = (factor[rows] for factor in (head_bias, weight, z, p, q))
            with torch.autocast(batch.head.device.type, enabled=False):
                return compute(self.rim, group[rows], tail_bias, *query_factors, *tail_factors)

        sources = tail_bias, head_bias, weight, *queries, scale, *entities, *shifts
        return scores, sources


class MuRP(HyperbolicScorer):
    """score(h, r, t) = -d(exp0(R_r log0 h), t (+) w_r)^2 + b_h + b_t, R_r diagonal.

    Paper: MuRP, "Multi-relational Poincare graph embeddings" (Balazevic et al. 2019,
    arXiv:1905.09791).
    """

    def add_tables(self, relations: int, dim: int, init: EmbeddingInit) -> None:  # noqa: ARG002
        self.stretches = nn.Embedding(relations, dim)
        nn.init.ones_(self.stretches.weight)

    def forward(self, batch: Data) -> Tensor:
        vectors = self.stretches(batch.relation) * self.entities(batch.head)
        return unit_point(self.scale(batch) * vectors)

    def tails(self, batch: Data) -> Tensor:
        shifts = self.shifts(batch, self.translations)
        return k_space.mobius_add(super().tails(batch), shifts, UNIT)

    def query_factors(self, batch: Data) -> Factors:
        shifts = self.shifts(batch, self.translations)
        return ball_distances.query_factors(self(batch), shifts)

    def tail_factors(self, relations: Tensor) -> Factors:
        scales = super().tail_factors(relations)
        shifts = self.shifts(Data(relation=relations), self.translations)
        return *scales, *ball_distances.shift_factors(shifts)


class RotH(HyperbolicScorer):
    """score(h, r, t) = -d_kappa(Rot_r(h (+) w_r) (+) w'_r, t)^2 + b_h + b_t, kappa of the relation.

    Rot_r rotates the planes of the coordinates 2 i and 2 i + 1. Points are exp0 of the parameters.

    Paper: RotH, "Low-dimensional hyperbolic knowledge graph embeddings". Chami et al. 2020,
    arXiv:2005.00545.
    """

    curvature_per_relation = True

    def add_tables(self, relations: int, dim: int, init: EmbeddingInit) -> None:
        check_even(dim)
        self.last_translations = table(relations, dim, init)
        self.rotations = table(relations, dim)
        nn.init.uniform_(self.rotations.weight, -1, 1)

    def forward(self, batch: Data) -> Tensor:
        head = self.entities(batch.head)
        point = unit_point(self.scale(batch) * head)
        shift = self.shifts(batch, self.translations)
        last_shift = self.shifts(batch, self.last_translations)
        turns = self.turns(batch, self.rotations)
        point = rotate(turns, k_space.mobius_add(point, shift, UNIT))
        point = k_space.mobius_add(point, last_shift, UNIT)
        return k_space.project(point, UNIT)

    def turns(self, batch: Data, angles: nn.Embedding) -> Tensor:
        """(cos, sin) of the angles of the queries' relations, `[queries, dim / 2, 2]`."""
        return per_relation(batch, lambda relation: unit_pairs(angles(relation)))

    def query_factors(self, batch: Data) -> Factors:
        return ball_distances.query_factors(self(batch))


class AttH(RotH):
    """RotH whose head is a mean of its rotation and its reflection, weighted by attention.

    q = exp0(sum of softmax(<a_r, z> / sqrt(dim)) z) (+) w_r over z = Rot_r(h), Ref_r(h), which are
    tangent vectors.

    Paper: AttH, "Low-dimensional hyperbolic knowledge graph embeddings". Chami et al. 2020,
    arXiv:2005.00545.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = PoincareBall,
        dim: PositiveInt = 64,
        init: EmbeddingInit = None,
    ) -> None:
        super().__init__(num_entities, num_relations, manifold, dim, init)

    def add_tables(self, relations: int, dim: int, init: EmbeddingInit) -> None:
        super().add_tables(relations, dim, init)
        self.reflections = table(relations, dim)
        nn.init.uniform_(self.reflections.weight, -1, 1)
        self.contexts = self.last_translations
        del self.last_translations

    def forward(self, batch: Data) -> Tensor:
        scale = self.scale(batch)
        head = self.entities(batch.head)
        rotation = rotate(self.turns(batch, self.rotations), head)
        reflection = reflect(self.turns(batch, self.reflections), head)
        images = torch.stack([rotation, reflection], 1)
        context = self.contexts(batch.relation).unsqueeze(1)
        products = (context * images).sum(-1, keepdim=True)
        weights = (products / math.sqrt(self.dim_out)).softmax(1)
        mean = (weights * images).sum(1)
        point = unit_point(scale * mean)
        shift = self.shifts(batch, self.translations)
        point = k_space.mobius_add(point, shift, UNIT)
        return k_space.project(point, UNIT)


def unit_point(vectors: Tensor) -> Tensor:
    """Points exp0(v) of the unit ball, `[..., dim] -> [..., dim]`, none of them beyond its rim."""
    return k_space.expmap0_projected(vectors, UNIT)


def rotate(turns: Tensor, x: Tensor) -> Tensor:
    """Rotate pairs of coordinates by the angles with (cos, sin) = `turns` `[..., pairs, 2]`."""
    cos, sin = turns.unbind(-1)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a - sin * b, sin * a + cos * b], -1).flatten(-2)


def reflect(turns: Tensor, x: Tensor) -> Tensor:
    """Reflect pairs of coordinates by the matrices [[cos, sin], [sin, -cos]]."""
    cos, sin = turns.unbind(-1)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a + sin * b, sin * a - cos * b], -1).flatten(-2)


def unit_pairs(angle: Tensor) -> Tensor:
    """Pairs of coordinates, normalised to (cos, sin) of angles, `[..., pairs, 2]`."""
    pairs = angle.unflatten(-1, (-1, 2))
    norm = pairs.norm(dim=-1, keepdim=True)
    return pairs / norm.clamp(min=1e-15)


def per_relation(batch: Data, make: Callable[[Tensor], Tensor]) -> Tensor:
    """`make` of each query's relation, `[queries, ...]`; computed once a relation in samples."""
    if "relation_index" not in batch:
        return make(batch.relation)
    return make(batch.relations).index_select(0, batch.relation_index)

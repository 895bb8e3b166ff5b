"""Models of knowledge graphs in the Poincare ball: MuRP, RotH, AttH.

A model is `forward` (the point of a query), `tails` (the points of tails) and the score
-distance^2 + biases of `triple_scores`. `scores` gives the same for all entities, by the matrix
products of `ball_distances`.

Parameters are tangent vectors at the origin. A ball of curvature kappa is the unit ball with
lengths times s = sqrt(-kappa): s exp0(v) is the unit ball's exp0(s v), and Mobius sums commute
with the factor. So all points are of the unit ball, and distances are divided by s.
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
from curvlab.models.triples.ball_distances import unique_without_waiting
from curvlab.options import EmbeddingInit, PositiveInt, SpaceMaker

UNIT = -1.0
"""Curvature of the unit ball."""

Factors = Sequence[Tensor]
"""Tensors of which `ball_distances` makes distances."""


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
        each = {"components": num_relations} if self.curvature_per_relation else {}
        self.curvature = manifold(**each).curvature
        self.dim_out = dim
        self.entities = table(num_entities, dim, init)
        self.translations = table(num_relations, dim, init)
        self.head_bias = nn.Parameter(torch.zeros(num_entities))
        self.tail_bias = nn.Parameter(torch.zeros(num_entities))
        self.add_tables(num_relations, dim, init)

    @abstractmethod
    def add_tables(self, relations: int, dim: int, init: EmbeddingInit) -> None:
        """Make further parameters of relations."""

    @property
    def manifold_out(self) -> Stereographic:
        return Stereographic(kappa=UNIT, learnable=False)

    @property
    def entity_points(self) -> Tensor:
        kappa = self.curvature()
        scale = (-kappa).sqrt() if len(kappa) == 1 else torch.ones_like(kappa[:1])
        return k_space.expmap0_projected(scale * self.entities.weight, UNIT)

    def scale(self, batch: Data) -> Tensor:
        """The queries' factor s = sqrt(-kappa), `[queries, 1]`, or `[1, 1]` for all."""
        kappa = self.curvature()
        if len(kappa) == self.translations.num_embeddings:
            kappa = kappa.index_select(0, batch.relation)
        return (-kappa).sqrt().view(-1, 1)

    def shifts(self, batch: Data, translations: nn.Embedding) -> Tensor:
        """Points of the unit ball that the queries' relations add `[queries, dim]`."""

        def points(relation: Tensor) -> Tensor:
            scale = self.scale(Data(relation=relation))
            return k_space.expmap0_projected(scale * translations(relation), UNIT)

        return per_relation(batch, points)

    @property
    def statistic_names(self) -> Sequence[str]:
        return ("at_rim",)

    def statistics(self, batch: Data, points: Tensor | None = None) -> dict[str, Tensor]:
        """`at_rim`, the share of points of queries and their tails at the rim of the ball."""
        queries = self(batch) if points is None else points
        tails = HyperbolicScorer.tails(self, batch)
        return {"at_rim": self.manifold_out.shares(torch.stack([queries, tails]))["at_rim"]}

    def tails(self, batch: Data) -> Tensor:
        """Points of the unit ball `[triples, dim]` whose distance to a query counts."""
        return k_space.expmap0_projected(self.scale(batch) * self.entities(batch.tail), UNIT)

    def sort_queries(self, batch: Data) -> Data:
        """Sort by relation: its queries share rows of the tables of relations and entities."""
        order = batch.relation.argsort(stable=True)
        queries = {"head": batch.head[order], "relation": batch.relation[order]}
        return Data(**queries, query=order.argsort()[batch.query], tail=batch.tail)

    def triple_scores(self, batch: Data) -> Tensor:
        relations, place = unique_without_waiting(batch.relation)
        batch = Data(**batch.to_dict(), relations=relations, place=place)
        with torch.autocast(batch.head.device.type, enabled=False):
            squared = k_space.sqdist(self(batch), self.tails(batch), UNIT)
            squared = squared / self.scale(batch).squeeze(1).square()
        return self.head_bias[batch.head] + self.tail_bias[batch.tail] - squared

    @property
    def rim(self) -> float:
        """Distance, halved, from the origin of the unit ball at which points stop."""
        return math.atanh(1 - tolerance(self.entities.weight.dtype).boundary)

    @abstractmethod
    def query_factors(self, batch: Data) -> Factors:
        """z, p and q of `ball_distances.query_factors`."""

    def tail_factors(self, relations: Tensor) -> Factors:
        """Scales of relations, and `ball_distances.shift_factors` if these shift tails."""
        return (self.scale(Data(relation=relations)),)

    def scores(self, batch: Data, among: Tensor | None = None) -> Tensor:
        """`triple_scores` of all pairs of a query and an entity; never in half precision."""
        scores, sources = self.block_scores(batch, among)
        return scores(slice(None), *sources)

    def block_scores(
        self, batch: Data, among: Tensor | None = None
    ) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        v: Tensor = self.entities.weight
        tail_bias: Tensor = self.tail_bias
        if among is not None:
            v = self.entities(among)
            tail_bias = tail_bias[among]
        relations, group = unique_without_waiting(batch.relation)
        with torch.autocast(batch.head.device.type, enabled=False):
            queries = self.query_factors(batch)
            scale, *shifts = self.tail_factors(relations)
        head_bias = self.head_bias.index_select(0, batch.head).unsqueeze(1)
        weight = -self.scale(batch).expand(len(head_bias), 1).square().reciprocal()
        learns = weight.requires_grad
        functions = ball_scores.LIBRARY.functions(v)
        compute: Callable[..., Tensor] = ball_distances.ball_scores
        entities: Factors = (v,)
        if functions is None:
            entities = ball_distances.polar(v)
        else:
            compute = partial(ball_scores.ball_scores, functions)

        def scores(
            rows: slice,
            tail_bias: Tensor,
            head_bias: Tensor,
            weight: Tensor,
            z: Tensor,
            p: Tensor,
            q: Tensor,
            *rest: Tensor,
        ) -> Tensor:
            if not learns:
                weight = weight.detach()
            of_rows = (each[rows] for each in (head_bias, weight, z, p, q))
            with torch.autocast(batch.head.device.type, enabled=False):
                return compute(self.rim, group[rows], tail_bias, *of_rows, *rest)

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
        stretched = self.stretches(batch.relation) * self.entities(batch.head)
        return k_space.expmap0_projected(self.scale(batch) * stretched, UNIT)

    def tails(self, batch: Data) -> Tensor:
        return k_space.mobius_add(super().tails(batch), self.shifts(batch, self.translations), UNIT)

    def query_factors(self, batch: Data) -> Factors:
        shifts = self.shifts(batch, self.translations)
        return ball_distances.query_factors(self(batch), shifts)

    def tail_factors(self, relations: Tensor) -> Factors:
        shifts = self.shifts(Data(relation=relations), self.translations)
        return *super().tail_factors(relations), *ball_distances.shift_factors(shifts)


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
        head = k_space.expmap0_projected(self.scale(batch) * self.entities(batch.head), UNIT)
        first, last = (
            self.shifts(batch, table) for table in (self.translations, self.last_translations)
        )
        turns = self.turns(batch, self.rotations)
        point = rotate(turns, k_space.mobius_add(head, first, UNIT))
        return k_space.project(k_space.mobius_add(point, last, UNIT), UNIT)

    def turns(self, batch: Data, angles: nn.Embedding) -> Tensor:
        """(cos, sin) of the angles of the queries' relations `[queries, dim / 2, 2]`."""
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
        both = torch.stack([rotation, reflection], 1)
        context = self.contexts(batch.relation).unsqueeze(1)
        weights = ((context * both).sum(-1, keepdim=True) / math.sqrt(self.dim_out)).softmax(1)
        point = k_space.expmap0_projected(scale * (weights * both).sum(1), UNIT)
        shift = self.shifts(batch, self.translations)
        return k_space.project(k_space.mobius_add(point, shift, UNIT), UNIT)


def rotate(turns: Tensor, x: Tensor) -> Tensor:
    """Rotate pairs of coordinates by angles, of which `turns` `[..., pairs, 2]` are (cos, sin)."""
    cos, sin = turns.unbind(-1)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a - sin * b, sin * a + cos * b], -1).flatten(-2)


def reflect(turns: Tensor, x: Tensor) -> Tensor:
    """Reflect pairs of coordinates by [[cos, sin], [sin, -cos]]."""
    cos, sin = turns.unbind(-1)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a + sin * b, sin * a - cos * b], -1).flatten(-2)


def unit_pairs(angle: Tensor) -> Tensor:
    """Pairs of coordinates `[..., pairs, 2]`, normalised: (cos, sin) of angles."""
    pairs = angle.unflatten(-1, (-1, 2))
    return pairs / pairs.norm(dim=-1, keepdim=True).clamp(min=1e-15)


def per_relation(batch: Data, make: Callable[[Tensor], Tensor]) -> Tensor:
    """`make` of the queries' relations, `[queries, ...]`; of sampled triples, once for each."""
    if "place" not in batch:
        return make(batch.relation)
    return make(batch.relations).index_select(0, batch.place)

"""Models of knowledge graphs in the Poincare ball: MuRP, RotH, AttH.

They score by distances, made by matrix products. Parameters are tangent vectors at the origin. A
ball of curvature kappa is the unit ball with lengths times s = sqrt(-kappa): s exp0(v) is the unit
ball's exp0(s v), and sums of points commute with the factor. With
u^2 = |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)) the distance is 2 arsinh(u) / s.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch_geometric.data import Data

from curvlab.manifolds import PoincareBall, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.kernels import squared_norm
from curvlab.manifolds.products import full_precision
from curvlab.models.triple_scorer import TripleScorer, check_even, table
from curvlab.models.triples.flat import SMALLEST
from curvlab.options import PositiveFloat, PositiveInt, SpaceMaker

UNIT = -1.0

FINAL = torch.float32
"""Type of distances, whose squares of sinh, which cancel, are in double precision."""


class HyperbolicScorer(TripleScorer):
    """score(h, r, t) = -distance(h moved by r, t)^2 + b_h + b_t.

    Args:
        manifold: makes the ball of all relations, or one for each, of its own curvature.
        init: start with embeddings uniform in [-init, init]; null: Xavier uniform.
    """

    curvature_per_relation = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = partial(PoincareBall, learnable=True),
        dim: PositiveInt = 64,
        init: PositiveFloat | None = None,
    ) -> None:
        super().__init__()
        each = {"components": num_relations} if self.curvature_per_relation else {}
        self.curvature, self.dim_out = manifold(**each).curvature, dim
        self.entities = table(num_entities, dim, init)
        self.translations = table(num_relations, dim, init)
        self.head_bias = nn.Parameter(torch.zeros(num_entities))
        self.tail_bias = nn.Parameter(torch.zeros(num_entities))
        self.add_tables(num_relations, dim, init)

    @abstractmethod
    def add_tables(self, relations: int, dim: int, init: float | None) -> None:
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

    def share_at_rim(self, batch: Data) -> Tensor:
        tail = HyperbolicScorer.tails(self, batch)
        return self.manifold_out.shares(torch.stack([self(batch), tail]))["at_rim"]

    def tails(self, batch: Data) -> Tensor:
        """Points of the unit ball `[triples, dim]` whose distance to a query counts."""
        return k_space.expmap0_projected(self.scale(batch) * self.entities(batch.tail), UNIT)

    def sort_queries(self, batch: Data) -> Data:
        """Sort by relation: its queries share rows of the tables of relations and entities."""
        order = batch.relation.argsort(stable=True)
        queries = {"head": batch.head[order], "relation": batch.relation[order]}
        return Data(**queries, query=order.argsort()[batch.query], tail=batch.tail)

    def triple_scores(self, batch: Data) -> Tensor:
        relations, place = _distinct(batch.relation)
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
    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Factors `[queries, ...]` of distances to exp0(v), and of entities, in the type of v."""

    @abstractmethod
    def sqdist(self, group: Tensor, *factors: Sequence[Tensor]) -> Tensor:
        """Squared distances of the unit ball `[queries, entities]` in float32.

        Factors are those of queries, of entities, and of entities in double precision, which get
        no derivative; `group` `[queries]` numbers the relations of the batch.
        """

    def scores(self, batch: Data, among: Tensor | None = None) -> Tensor:
        """Minus squared distances, with biases; never in half precision, which cancels."""
        scores, sources = self.block_scores(batch, among)
        return scores(slice(None), *sources)

    def block_scores(
        self, batch: Data, among: Tensor | None = None
    ) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        every = among is None
        v = self.entities.weight if every else self.entities(among)
        tail_bias = self.tail_bias if every else self.tail_bias[among]
        with torch.autocast(batch.head.device.type, enabled=False):
            queries, entities = self.factors(batch, v.to(FINAL))
            with torch.no_grad():
                exact = self.factors(batch, v.double())[1]
        group = _distinct(batch.relation)[1]
        head_bias = self.head_bias.index_select(0, batch.head).unsqueeze(1)
        weight = -self.scale(batch).expand(len(head_bias), 1).square().reciprocal()
        learns = weight.requires_grad

        def scores(
            rows: slice, tail_bias: Tensor, head_bias: Tensor, weight: Tensor, *factors: Tensor
        ) -> Tensor:
            of_queries = [factor[rows] for factor in factors[: len(queries)]]
            with torch.autocast(batch.head.device.type, enabled=False):
                squared = self.sqdist(group[rows], of_queries, factors[len(queries) :], exact)
                biases = head_bias[rows].to(squared) + tail_bias.to(squared)
                weight = (weight if learns else weight.detach())[rows].to(squared)
                return torch.addcmul(biases, squared, weight)

        return scores, (tail_bias, head_bias, weight, *queries, *entities)


class MuRP(HyperbolicScorer):
    """score(h, r, t) = -d(exp0(R_r log0 h), t (+) w_r)^2 + b_h + b_t, R_r diagonal.

    Paper: MuRP, "Multi-relational Poincare graph embeddings" (Balazevic et al. 2019,
    arXiv:1905.09791).
    """

    def add_tables(self, relations: int, dim: int, init: float | None) -> None:  # noqa: ARG002
        self.stretches = nn.Embedding(relations, dim)
        nn.init.ones_(self.stretches.weight)

    def forward(self, batch: Data) -> Tensor:
        stretched = self.stretches(batch.relation) * self.entities(batch.head)
        return k_space.expmap0_projected(self.scale(batch) * stretched, UNIT)

    def tails(self, batch: Data) -> Tensor:
        return k_space.mobius_add(super().tails(batch), self.shifts(batch, self.translations), UNIT)

    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Those of u^2 = p + q n - <z, b> m, with y = t (+) w_r, t = tanh(a) e.

        Such sums cancel less than |y|^2 does. With b = cosh(a) sinh(a) e, of the query:
        z = x / (1 - |x|^2), p = |x - w|^2 / (1 - |x|^2) (1 - |w|^2), q = (1 + |x|^2) / (1 - |x|^2);
        of relation and entity: n = ((1 + |w|^2) sinh(a)^2 + 2 <w, b>) / (1 - |w|^2),
        m = (2 (1 + |w|^2) + 4 <w, t>) / (1 - |w|^2).
        """
        x, w = self(batch).double(), self.shifts(batch, self.translations).double()
        to_rim = 1 - squared_norm(x)
        p = squared_norm(x - w) / (to_rim * (1 - squared_norm(w)))
        length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
        a = ((-self.curvature()).sqrt().to(v) * length).clamp(max=self.rim)
        w = self.shifts(Data(relation=_distinct(batch.relation)[0]), self.translations).to(v)
        growth = 2 / (1 - squared_norm(w)) - 1  # (1 + |w|^2) / (1 - |w|^2)
        along = (2 * (1 + growth) * w) @ v.T * (a.tanh() / length).T
        n = torch.addcmul(growth * a.sinh().square().T, along, a.cosh().square().T / 2)
        b = a.cosh() * a.sinh() / length * v
        return (x / to_rim, p, 2 / to_rim - 1), (b, n, 2 * growth + along)

    def sqdist(self, group: Tensor, *factors: Sequence[Tensor]) -> Tensor:
        squared: Tensor = _SquaredToMoved.apply(group, *(each for part in factors for each in part))
        return squared


class RotH(HyperbolicScorer):
    """score(h, r, t) = -d_kappa(Rot_r(h (+) w_r) (+) w'_r, t)^2 + b_h + b_t, kappa of the relation.

    Rot_r rotates the planes of the coordinates 2 i and 2 i + 1. Points are exp0 of the parameters.

    Paper: RotH, "Low-dimensional hyperbolic knowledge graph embeddings". Chami et al. 2020,
    arXiv:2005.00545.
    """

    curvature_per_relation = True

    def add_tables(self, relations: int, dim: int, init: float | None) -> None:
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

    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Those of points exp0(s v).

        With a = s |v|, e = v / |v|, p = (1 + |x|^2) / 4 (1 - |x|^2), q = <x, e> / 2 (1 - |x|^2):
        u^2 = (p - q) exp(2 a) + (p + q) exp(-2 a) - 1/2.
        """
        x = self(batch)
        x2 = squared_norm(x)
        p, x = (1 + x2) / (4 * (1 - x2)), x / (2 * (1 - x2))
        length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
        return (x, p, self.scale(batch).expand(len(x), 1)), (v / length, length)

    def sqdist(self, group: Tensor, *factors: Sequence[Tensor]) -> Tensor:  # noqa: ARG002
        queries, entities, exact = factors
        squared: Tensor = SquaredToRays.apply(*queries, *entities, self.rim, *exact)
        return squared


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
        init: PositiveFloat | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, manifold, dim, init)

    def add_tables(self, relations: int, dim: int, init: float | None) -> None:
        super().add_tables(relations, dim, init)
        self.reflections = table(relations, dim)
        nn.init.uniform_(self.reflections.weight, -1, 1)
        self.contexts = self.last_translations
        del self.last_translations

    def forward(self, batch: Data) -> Tensor:
        scale, head = self.scale(batch), self.entities(batch.head)
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
    (cos, sin), (a, b) = turns.unbind(-1), x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a - sin * b, sin * a + cos * b], -1).flatten(-2)


def reflect(turns: Tensor, x: Tensor) -> Tensor:
    """Reflect pairs of coordinates by [[cos, sin], [sin, -cos]]."""
    (cos, sin), (a, b) = turns.unbind(-1), x.unflatten(-1, (-1, 2)).unbind(-1)
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


def _distinct(relation: Tensor) -> tuple[Tensor, Tensor]:
    """Relations, and the place of each query's; all different on a device that would wait."""
    if relation.device.type == "cpu":
        return relation.unique(return_inverse=True)
    return relation, torch.arange(len(relation), device=relation.device)


def _row_blocks(group: Tensor, entities: int) -> list[tuple[slice, slice | Tensor]]:
    """Rows of one relation whose pairs with entities stay in a core's cache, and its row."""
    if group.device.type != "cpu":
        return [(slice(len(group)), group)]
    blocks: list[tuple[slice, slice | Tensor]] = []
    size, start = max(1, 2**17 // entities), 0
    for number, count in torch.stack(group.unique_consecutive(return_counts=True), 1).tolist():
        end, at = start + count, slice(number, number + 1)
        blocks += [(slice(i, min(i + size, end)), at) for i in range(start, end, size)]
        start = end
    return blocks


def _arsinh_squared_(u2: Tensor) -> tuple[Tensor, Tensor]:
    """4 arsinh(u)^2 and its derivative by u^2; a u^2 rounded to below 0 counts as 0.

    arsinh(u) = log1p(u + u^2 / (1 + sqrt(1 + u^2))) is exact for small u, where the derivative
    4 arsinh(u) / (u sqrt(1 + u^2)) is 4.
    """
    u2 = u2.clamp_(min=SMALLEST)
    u, far = u2.sqrt(), (1 + u2).sqrt_()
    distance = torch.addcdiv(u, u2, 1 + far, out=u2).log1p_().mul_(2)
    return distance.square(), distance.div_(u.mul_(far)).mul_(2)


class _SquaredToMoved(Function):
    """4 arsinh(u)^2, u^2 = p + q n - <z, b> m, of queries (z, p, q) and entities b.

    The factors n and m `[relations, entities]` have a row for each number in `group` `[queries]`.
    """

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Tensor:
        group, z, p, q, b, n, m, exact_b, exact_n, exact_m = values
        product = z @ exact_b.T
        squared, derivative = b.new_empty((2, *product.shape))
        for row, at in _row_blocks(group, len(b)):
            u2 = torch.mul(q[row], exact_n[at]).add_(p[row])
            u2.addcmul_(product[row], exact_m[at], value=-1)
            squared[row], derivative[row] = _arsinh_squared_(u2.to(FINAL))
        z, q, product = (each.to(FINAL) for each in (z, q, product))
        ctx.save_for_backward(group, z, q, b, n, m, derivative, product)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        group, z, q, b, n, m, derivative, product = ctx.saved_tensors
        of_product, of_p, of_q = (torch.empty_like(each) for each in (product, q, q))
        of_n, of_m = torch.zeros_like(n), torch.zeros_like(m)
        for row, at in _row_blocks(group, len(b)):
            of_u2 = gradients[0][row] * derivative[row]
            of_p[row, 0], of_q[row, 0] = of_u2.sum(1), torch.linalg.vecdot(of_u2, n[at])
            torch.mul(of_u2, m[at], out=of_product[row])
            of_m.index_add_(0, group[row], of_u2 * product[row], alpha=-1)
            of_n.index_add_(0, group[row], of_u2.mul_(q[row]))
        of_queries = -(of_product @ b), of_p, of_q
        return None, *of_queries, of_product.T @ -z, of_n, of_m, None, None, None


class SquaredToRays(Function):
    """4 arsinh(u)^2, u^2 = 2 p cosh(2 a) - 2 q sinh(2 a) - 1/2, a = min(scale length, rim).

    Shapes: of queries x `[queries, dim]`, where q = <x, ray>, p and scale `[queries, 1]`; of
    entities rays `[entities, dim]` and length `[entities, 1]`; `[queries, entities]` in float32.
    """

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Tensor:
        x, p, scale, rays, length, rim, *exact = values
        x, p, scale, *exact = (each.double() for each in (x, p, scale, *(exact or (rays, length))))
        scales, group = _distinct(scale.squeeze(1))
        q, a = x @ exact[0].T, scales.unsqueeze(1) * exact[1].T
        growth = (2 * a).clamp_(max=2 * rim).exp_()
        fall = growth.reciprocal()
        cosh, sinh = growth + fall, growth - fall  # twice them
        squared, derivative, slopes = q.new_empty((3, *q.shape), dtype=FINAL)
        for row, at in _row_blocks(group, len(rays)):
            u2 = torch.mul(p[row], cosh[at]).addcmul_(q[row], sinh[at], value=-1).sub_(0.5)
            squared[row], derivative[row] = _arsinh_squared_(u2.to(FINAL))
            slopes[row] = torch.mul(p[row], sinh[at]).addcmul_(q[row], cosh[at], value=-1)
        saved = (x, scale, rays, length, cosh, sinh, a < rim)
        ctx.save_for_backward(*(factor.to(FINAL) for factor in saved), group, derivative, slopes)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, rays, length, cosh, sinh, inside, group, derivative, slopes = ctx.saved_tensors
        of_q, of_p, of_scale = (torch.empty_like(each) for each in (derivative, scale, scale))
        of_length = torch.zeros_like(length.T)
        for row, at in _row_blocks(group, len(rays)):
            of_u2 = gradients[0][row] * derivative[row]
            of_p[row, 0] = torch.linalg.vecdot(of_u2, cosh[at])
            torch.mul(of_u2, sinh[at], out=of_q[row])
            of_a = of_u2.mul_(slopes[row]).mul_(inside[at])
            of_scale[row] = of_a @ length
            of_length += (scale[row] * of_a).sum(0)
        factors = -(of_q @ rays), of_p, 2 * of_scale, of_q.T @ -x, 2 * of_length.T
        return *factors, *[None] * (len(ctx.needs_input_grad) - len(factors))

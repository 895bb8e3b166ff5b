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
from curvlab.manifolds.kernels import dot, squared_norm
from curvlab.manifolds.products import full_precision
from curvlab.models.triple_scorer import TripleScorer, check_even, table
from curvlab.models.triples.flat import SMALLEST
from curvlab.options import PositiveInt, SpaceMaker

UNIT = -1.0

FINAL = torch.float32
"""Type of distances, whose squares of sinh, which cancel, are in double precision."""


class HyperbolicScorer(TripleScorer):
    """score(h, r, t) = -distance(h moved by r, t)^2 + b_h + b_t.

    Args:
        manifold: makes the ball of all relations, or one for each, of its own curvature.
    """

    curvature_per_relation = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = partial(PoincareBall, learnable=True),
        dim: PositiveInt = 64,
    ) -> None:
        super().__init__()
        each = {"components": num_relations} if self.curvature_per_relation else {}
        self.curvature, self.dim_out = manifold(**each).curvature, dim
        self.entities = table(num_entities, dim)
        self.translations = table(num_relations, dim)
        self.head_bias = nn.Parameter(torch.zeros(num_entities))
        self.tail_bias = nn.Parameter(torch.zeros(num_entities))
        self.add_tables(num_relations, dim)

    @abstractmethod
    def add_tables(self, relations: int, dim: int) -> None:
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

    def share_at_rim(self, batch: Data) -> Tensor:
        tail = HyperbolicScorer.tails(self, batch)
        return self.manifold_out.shares(torch.stack([self(batch), tail]))["at_rim"]

    def tails(self, batch: Data) -> Tensor:
        """Points of the unit ball `[triples, dim]` whose distance to a query counts."""
        return k_space.expmap0_projected(self.scale(batch) * self.entities(batch.tail), UNIT)

    def triple_scores(self, batch: Data) -> Tensor:
        with torch.autocast(batch.head.device.type, enabled=False):
            squared = k_space.sqdist(self(batch), self.tails(batch), UNIT)
            squared = squared / self.scale(batch).squeeze(1).square()
        return self.head_bias[batch.head] + self.tail_bias[batch.tail] - squared

    @abstractmethod
    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Factors `[queries, ...]` and `[entities, ...]` of distances to exp0(v)."""

    @abstractmethod
    def sqdist(self, queries: Sequence[Tensor], entities: Sequence[Tensor]) -> Tensor:
        """Squared distances of the unit ball `[queries, entities]` in float32, from factors."""

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
            queries, entities = self.factors(batch, v)
        head_bias = self.head_bias.index_select(0, batch.head).unsqueeze(1)
        weight = -self.scale(batch).expand(len(head_bias), 1).square().reciprocal()

        def scores(
            rows: slice, tail_bias: Tensor, head_bias: Tensor, weight: Tensor, *factors: Tensor
        ) -> Tensor:
            of_queries = [factor[rows] for factor in factors[: len(queries)]]
            with torch.autocast(batch.head.device.type, enabled=False):
                squared = self.sqdist(of_queries, factors[len(queries) :])
                biases = head_bias[rows].to(squared) + tail_bias.to(squared)
                return torch.addcmul(biases, squared, weight[rows].to(squared))

        return scores, (tail_bias, head_bias, weight, *queries, *entities)


class MuRP(HyperbolicScorer):
    """score(h, r, t) = -d(exp0(R_r log0 h), t (+) w_r)^2 + b_h + b_t, R_r diagonal.

    Paper: MuRP, "Multi-relational Poincare graph embeddings" (Balazevic et al. 2019,
    arXiv:1905.09791).
    """

    def add_tables(self, relations: int, dim: int) -> None:
        self.stretches = nn.Embedding(relations, dim)
        nn.init.ones_(self.stretches.weight)

    def forward(self, batch: Data) -> Tensor:
        stretched = self.stretches(batch.relation) * self.entities(batch.head)
        return k_space.expmap0_projected(self.scale(batch) * stretched, UNIT)

    def tails(self, batch: Data) -> Tensor:
        w = k_space.expmap0_projected(self.scale(batch) * self.translations(batch.relation), UNIT)
        return k_space.mobius_add(super().tails(batch), w, UNIT)

    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Those of u^2, with y = t (+) w and from three matrix products.

        |y|^2, 1 - |y|^2 and <x, y> have the denominator 1 + 2 <t, w> + |t|^2 |w|^2, which cancels:
        u^2 (1 - |x|^2) (1 - |w|^2) (1 - |t|^2) is a sum of terms that are linear in (1, |t|^2, t),
        and of -4 <x, t> <w, t>.
        """
        x, scale = self(batch), self.scale(batch)
        t = k_space.expmap0_projected(scale * v, UNIT)
        w = k_space.expmap0_projected(scale * self.translations(batch.relation), UNIT)
        x2, w2, t2, xw = squared_norm(x), squared_norm(w), squared_norm(t), dot(x, w)
        constant = x2 + w2 - 2 * xw
        of_square = (1 + x2) * w2 + 1 - w2 + 2 * xw
        linear = torch.cat([constant, of_square, 2 * ((1 + x2) * w - (1 + w2) * x)], -1)
        rows, columns = 1 / ((1 - x2) * (1 - w2)), 1 / (1 - t2)
        of_entities = columns * torch.cat([torch.ones_like(t2), t2, t], -1)
        return (rows * linear, 4 * rows * x, w), (of_entities, columns.sqrt() * t)

    def sqdist(self, queries: Sequence[Tensor], entities: Sequence[Tensor]) -> Tensor:
        squared: Tensor = _SquaredToMoved.apply(*queries, *entities)
        return squared


class RotH(HyperbolicScorer):
    """score(h, r, t) = -d_kappa(Rot_r(h (+) w_r) (+) w'_r, t)^2 + b_h + b_t, kappa of the relation.

    Rot_r rotates the planes of the coordinates 2 i and 2 i + 1. Points are exp0 of the parameters.

    Paper: RotH, "Low-dimensional hyperbolic knowledge graph embeddings". Chami et al. 2020,
    arXiv:2005.00545.
    """

    curvature_per_relation = True

    def add_tables(self, relations: int, dim: int) -> None:
        check_even(dim)
        self.last_translations = table(relations, dim)
        self.rotations = table(relations, dim)
        nn.init.uniform_(self.rotations.weight, -1, 1)

    def forward(self, batch: Data) -> Tensor:
        scale = self.scale(batch)
        head, first, last = (
            k_space.expmap0_projected(scale * embedding(index), UNIT)
            for embedding, index in (
                (self.entities, batch.head),
                (self.translations, batch.relation),
                (self.last_translations, batch.relation),
            )
        )
        turned = rotate(self.rotations(batch.relation), k_space.mobius_add(head, first, UNIT))
        return k_space.project(k_space.mobius_add(turned, last, UNIT), UNIT)

    def factors(self, batch: Data, v: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Those of points exp0(s v).

        With a = s |v|, e = v / |v|, p = (1 + |x|^2) / 4 (1 - |x|^2), q = <x, e> / 2 (1 - |x|^2):
        u^2 = (p - q) exp(2 a) + (p + q) exp(-2 a) - 1/2.
        """
        x = self(batch)
        length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
        x2 = squared_norm(x)
        p, x = (1 + x2) / (4 * (1 - x2)), x / (2 * (1 - x2))
        return (x, p, self.scale(batch).expand(len(x), 1)), (v / length, length)

    def sqdist(self, queries: Sequence[Tensor], entities: Sequence[Tensor]) -> Tensor:
        rim = math.atanh(1 - tolerance(self.entities.weight.dtype).boundary)
        squared: Tensor = SquaredToRays.apply(*queries, *entities, rim)
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
    ) -> None:
        super().__init__(num_entities, num_relations, manifold, dim)

    def add_tables(self, relations: int, dim: int) -> None:
        super().add_tables(relations, dim)
        self.reflections = table(relations, dim)
        nn.init.uniform_(self.reflections.weight, -1, 1)
        self.contexts = self.last_translations
        del self.last_translations

    def forward(self, batch: Data) -> Tensor:
        scale, head = self.scale(batch), self.entities(batch.head)
        turned = rotate(self.rotations(batch.relation), head)
        both = torch.stack([turned, reflect(self.reflections(batch.relation), head)], 1)
        context = self.contexts(batch.relation).unsqueeze(1)
        weights = ((context * both).sum(-1, keepdim=True) / math.sqrt(self.dim_out)).softmax(1)
        point = k_space.expmap0_projected(scale * (weights * both).sum(1), UNIT)
        shift = k_space.expmap0_projected(scale * self.translations(batch.relation), UNIT)
        return k_space.project(k_space.mobius_add(point, shift, UNIT), UNIT)


def rotate(angle: Tensor, x: Tensor) -> Tensor:
    """Rotate pairs of coordinates by the angle whose (cos, sin) `angle` is when normalised."""
    (cos, sin), (a, b) = _unit_pairs(angle), x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a - sin * b, sin * a + cos * b], -1).flatten(-2)


def reflect(angle: Tensor, x: Tensor) -> Tensor:
    """Reflect pairs of coordinates by [[cos, sin], [sin, -cos]]."""
    (cos, sin), (a, b) = _unit_pairs(angle), x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([cos * a + sin * b, sin * a - cos * b], -1).flatten(-2)


def _unit_pairs(angle: Tensor) -> tuple[Tensor, ...]:
    pairs = angle.unflatten(-1, (-1, 2))
    return (pairs / pairs.norm(dim=-1, keepdim=True).clamp(min=1e-15)).unbind(-1)


def _row_blocks(table: Tensor) -> list[slice]:
    """Parts of `[queries, entities]` whose intermediate results stay in a processor's cache."""
    size = 1 if table.device.type == "cpu" else max(len(table), 1)
    return [slice(start, start + size) for start in range(0, len(table), size)]


def _arsinh_squared_(u2: Tensor) -> tuple[Tensor, Tensor]:
    """4 arsinh(u)^2 and its derivative by u^2, in place; a u^2 rounded to below 0 counts as 0.

    arsinh(u) = log1p(u + u^2 / (1 + sqrt(1 + u^2))) is exact for small u, where the derivative
    4 arsinh(u) / (u sqrt(1 + u^2)) is 4.
    """
    u2 = u2.clamp_(min=SMALLEST)
    u, far = u2.sqrt(), (1 + u2).sqrt_()
    distance = u2.div_(1 + far).add_(u).log1p_().mul_(2)
    derivative = (2 * distance).div_(u.mul_(far))
    return distance.square_(), derivative


class _SquaredToMoved(Function):
    """4 arsinh(u)^2, u^2 = <a, b> - <x, t> <w, t>, of queries (a, x, w) and entities (b, t)."""

    @staticmethod
    def forward(ctx: Any, *factors: Tensor) -> Tensor:
        a, x, w, b, t = (factor.double() for factor in factors)
        first, along, across = a @ b.T, x @ t.T, w @ t.T
        squared, *kept = first.new_empty((4, *first.shape), dtype=FINAL)
        for row in _row_blocks(first):
            u2 = torch.addcmul(first[row], along[row], across[row], value=-1)
            squared[row], derivative = _arsinh_squared_(u2.to(FINAL))
            kept[0][row] = derivative
            torch.mul(derivative, across[row].to(FINAL), out=kept[1][row])
            torch.mul(derivative, along[row].to(FINAL), out=kept[2][row])
        ctx.save_for_backward(*(factor.to(FINAL) for factor in (a, x, w, b, t)), *kept)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        a, x, w, b, t, *kept = ctx.saved_tensors
        first, along, across = (gradients[0] * derivative for derivative in kept)
        of_t = along.T @ x + across.T @ w
        return first @ b, -(along @ t), -(across @ t), first.T @ a, -of_t


class SquaredToRays(Function):
    """4 arsinh(u)^2, u^2 = 2 p cosh(2 a) - 2 q sinh(2 a) - 1/2, a = min(scale length, rim).

    Shapes: of queries x `[queries, dim]`, where q = <x, ray>, p and scale `[queries, 1]`; of
    entities rays `[entities, dim]` and length `[entities, 1]`; `[queries, entities]` in float32.
    """

    @staticmethod
    def forward(ctx: Any, *values: Any) -> Tensor:
        *factors, rim = values
        x, p, scale, rays, length = (factor.double() for factor in factors)
        q = x @ rays.T
        squared, *kept = q.new_empty((4, *q.shape), dtype=FINAL)
        for row in _row_blocks(q):
            a = scale[row] * length.T
            growth = (2 * a).clamp_(max=2 * rim).exp_()
            shrunk = 1 / growth
            cosh, sinh = growth + shrunk, growth.sub_(shrunk)  # twice them
            u2 = torch.addcmul(p[row] * cosh, q[row], sinh, value=-1).sub_(0.5)
            of_a = torch.addcmul(p[row] * sinh, q[row], cosh, value=-1).mul_(a < rim)
            squared[row], derivative = _arsinh_squared_(u2.to(FINAL))
            for out, other in zip(kept, (cosh, sinh, of_a), strict=True):
                torch.mul(derivative, other.to(FINAL), out=out[row])
        ctx.save_for_backward(*(factor.to(FINAL) for factor in (x, scale, rays, length)), *kept)
        return squared

    @staticmethod
    @once_differentiable
    @full_precision()
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, scale, rays, length, *kept = ctx.saved_tensors
        of_p, of_q, of_a = (gradients[0] * derivative for derivative in kept)
        of_scale, of_length = 2 * of_a @ length, 2 * of_a.T @ scale
        of_queries = -(of_q @ rays), of_p.sum(1, keepdim=True), of_scale
        return *of_queries, -(of_q.T @ x), of_length, None

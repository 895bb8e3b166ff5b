"""MuRP, RotH and AttH: distances in the Poincare ball, by matrix products.

Parameters are tangent vectors at the origin. A ball of curvature kappa is the unit ball with
lengths times s = sqrt(-kappa): s exp0(v) is the unit ball's exp0(s v), and sums of points commute
with the factor. With u^2 = |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)) the distance is 2 arsinh(u) / s.
"""

import math
from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import Curvature, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.tolerances import tolerance
from curvlab.models.kg_ball_distance import arsinh_squared, squared_to_rays
from curvlab.models.kg_bilinear import check_even
from curvlab.models.triple_scorer import TripleScorer, table

UNIT = -1.0


class HyperbolicScorer(TripleScorer):
    """score(h, r, t) = -distance(h moved by r, t)^2 + b_h + b_t.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        curvature: kappa, below 0: one for all relations, or one each.
    """

    def __init__(
        self, num_entities: int, num_relations: int, dim: int, curvature: Curvature
    ) -> None:
        super().__init__()
        self.curvature = curvature
        self.entities = table(num_entities, dim)
        self.translations = table(num_relations, dim)
        self.head_bias = nn.Parameter(torch.zeros(num_entities))
        self.tail_bias = nn.Parameter(torch.zeros(num_entities))

    @property
    def manifold_out(self) -> Stereographic:
        """The unit ball, where queries lie whatever the relation's curvature."""
        return Stereographic(kappa=UNIT, learnable=False)

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.entities.embedding_dim

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    def scale(self, batch: Data) -> Tensor:
        """The queries' factor s = sqrt(-kappa), `[queries, 1]`, or `[1, 1]` for all."""
        kappa = self.curvature()
        if kappa.dim():
            kappa = kappa.index_select(0, batch.relation)
        return (-kappa).sqrt().view(-1, 1)

    def share_at_rim(self, batch: Data) -> Tensor:
        """Share of queries and tails, which it takes as points exp0(s v)."""
        tail = k_space.expmap0_projected(self.scale(batch) * self.entities(batch.tail), UNIT)
        return self.manifold_out.shares(torch.stack([self(batch), tail]))["at_rim"]

    @abstractmethod
    def sqdist(self, batch: Data) -> Tensor:
        """Squared distances between queries and all entities `[queries, entities]`."""

    def scores(self, batch: Data) -> Tensor:
        """Minus squared distances, with biases; never in half precision, which cancels."""
        with torch.autocast(batch.head.device.type, enabled=False):
            squared = self.sqdist(batch)
        return self.head_bias.index_select(0, batch.head).unsqueeze(1) + self.tail_bias - squared


class MuRP(HyperbolicScorer):
    """score(h, r, t) = -d(exp0(R_r log0 h), t (+) w_r)^2 + b_h + b_t, R_r diagonal.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        curvature: makes the one of all relations, below 0.

    Source: Balazevic et al. 2019, "Multi-relational Poincare graph embeddings".
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        curvature: Callable[..., Curvature],
    ) -> None:
        super().__init__(num_entities, num_relations, dim, curvature())
        self.stretches = nn.Embedding(num_relations, dim)
        nn.init.ones_(self.stretches.weight)

    def forward(self, batch: Data) -> Tensor:
        """Stretched heads `[queries, dim]`, points of the unit ball."""
        stretched = self.stretches(batch.relation) * self.entities(batch.head)
        return k_space.expmap0_projected(self.scale(batch) * stretched, UNIT)

    def sqdist(self, batch: Data) -> Tensor:
        """(2 arsinh(u) / s)^2, with y = t (+) w and from three matrix products.

        |y|^2, 1 - |y|^2 and <x, y> have the denominator 1 + 2 <t, w> + |t|^2 |w|^2, which cancels:
        u^2 (1 - |x|^2) (1 - |w|^2) (1 - |t|^2) is a sum of terms that are linear in (1, |t|^2, t),
        and of -4 <x, t> <w, t>.
        """
        x, scale = self(batch), self.scale(batch)
        t = k_space.expmap0_projected(scale * self.entities.weight, UNIT)
        w = k_space.expmap0_projected(scale * self.translations(batch.relation), UNIT)
        x2, w2, t2, xw = _squares(x), _squares(w), _squares(t), (x * w).sum(-1, keepdim=True)
        constant = x2 + w2 - 2 * xw
        of_square = (1 + x2) * w2 + 1 - w2 + 2 * xw
        linear = torch.cat([constant, of_square, 2 * ((1 + x2) * w - (1 + w2) * x)], -1)
        rows, columns = 1 / ((1 - x2) * (1 - w2)), 1 / (1 - t2)
        first = (rows * linear) @ (columns * torch.cat([torch.ones_like(t2), t2, t], -1)).T
        u2 = torch.addcmul(first, (4 * rows * x) @ (columns * t).T, w @ t.T, value=-1)
        return (2 / scale).square() * arsinh_squared(u2)


class RotH(HyperbolicScorer):
    """score(h, r, t) = -d_kappa(Rot_r(h (+) w_r) (+) w'_r, t)^2 + b_h + b_t, kappa of the relation.

    Rot_r rotates the planes of the coordinates 2 i and 2 i + 1. Points are exp0 of the parameters.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings, even.
        curvature: makes those of the relations, below 0.

    Source: Chami et al. 2020, "Low-dimensional hyperbolic knowledge graph embeddings".
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        curvature: Callable[..., Curvature],
    ) -> None:
        check_even(dim)
        super().__init__(num_entities, num_relations, dim, curvature(components=num_relations))
        self.last_translations = table(num_relations, dim)
        self.rotations = table(num_relations, dim)
        nn.init.uniform_(self.rotations.weight, -1, 1)

    def forward(self, batch: Data) -> Tensor:
        """Moved heads `[queries, dim]`, points of the unit ball."""
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

    def sqdist(self, batch: Data) -> Tensor:
        """(2 arsinh(u) / s)^2 to the points exp0(s v) of all entities.

        With a = s |v|, e = v / |v|, p = (1 + |x|^2) / 4 (1 - |x|^2), q = <x, e> / 2 (1 - |x|^2):
        u^2 = (p - q) exp(2 a) + (p + q) exp(-2 a) - 1/2.
        """
        x, scale = self(batch), self.scale(batch)
        v = self.entities.weight
        length = v.norm(dim=-1, keepdim=True).clamp(min=1e-15)
        rim = math.atanh(1 - tolerance(v.dtype).boundary)
        x2 = _squares(x)
        p, q = (1 + x2) / (4 * (1 - x2)), (x / (2 * (1 - x2))) @ (v / length).T
        return (2 / scale).square() * squared_to_rays(p, q, scale, length.T, rim)


class AttH(RotH):
    """RotH whose head is a mean of its rotation and its reflection, weighted by attention.

    q = exp0(sum of softmax(<a_r, z> / sqrt(dim)) z) (+) w_r over z = Rot_r(h), Ref_r(h), which are
    tangent vectors. Source: Chami et al. 2020.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        curvature: Callable[..., Curvature],
    ) -> None:
        super().__init__(num_entities, num_relations, dim, curvature)
        self.reflections = table(num_relations, dim)
        nn.init.uniform_(self.reflections.weight, -1, 1)
        self.contexts = self.last_translations
        del self.last_translations

    def forward(self, batch: Data) -> Tensor:
        """Moved heads `[queries, dim]`, points of the unit ball."""
        scale, head = self.scale(batch), self.entities(batch.head)
        turned = rotate(self.rotations(batch.relation), head)
        mirrored = reflect(self.reflections(batch.relation), head)
        both = torch.stack([turned, mirrored], 1)
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


def _squares(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)

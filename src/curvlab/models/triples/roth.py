"""RotH, "Low-dimensional hyperbolic knowledge graph embeddings".

Chami et al. 2020, arXiv:2005.00545.
"""

import math

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import PoincareBall
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.curved_trig import tolerance
from curvlab.manifolds.products import product
from curvlab.models.triple_scorer import table
from curvlab.models.triples.ball_distance import squared_to_rays
from curvlab.models.triples.hyperbolic_scorer import UNIT, HyperbolicScorer, squares
from curvlab.models.triples.planes import check_even, rotate
from curvlab.options import PositiveInt, SpaceMaker


class RotH(HyperbolicScorer):
    """score(h, r, t) = -d_kappa(Rot_r(h (+) w_r) (+) w'_r, t)^2 + b_h + b_t, kappa of the relation.

    Rot_r rotates the planes of the coordinates 2 i and 2 i + 1. Points are exp0 of the parameters.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        manifold: makes a ball for each relation, of its own curvature.
        dim: width of the embeddings, even.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = PoincareBall,
        dim: PositiveInt = 64,
    ) -> None:
        check_even(dim)
        balls = manifold(components=num_relations)
        super().__init__(num_entities, num_relations, dim, balls.curvature)
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
        x2 = squares(x)
        p, q = (1 + x2) / (4 * (1 - x2)), product(x / (2 * (1 - x2)), (v / length).T)
        return (2 / scale).square() * squared_to_rays(p, q, scale, length.T, rim)

"""MuRP, "Multi-relational Poincare graph embeddings" (Balazevic et al. 2019, arXiv:1905.09791)."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import PoincareBall
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds.products import product
from curvlab.models.triples.ball_distance import arsinh_squared
from curvlab.models.triples.hyperbolic_scorer import UNIT, HyperbolicScorer, squares
from curvlab.options import PositiveInt, SpaceMaker


class MuRP(HyperbolicScorer):
    """score(h, r, t) = -d(exp0(R_r log0 h), t (+) w_r)^2 + b_h + b_t, R_r diagonal.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        manifold: makes the ball of all relations.
        dim: width of the embeddings.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        manifold: SpaceMaker[PoincareBall] = PoincareBall,
        dim: PositiveInt = 64,
    ) -> None:
        super().__init__(num_entities, num_relations, dim, manifold().curvature)
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
        x2, w2, t2, xw = squares(x), squares(w), squares(t), (x * w).sum(-1, keepdim=True)
        constant = x2 + w2 - 2 * xw
        of_square = (1 + x2) * w2 + 1 - w2 + 2 * xw
        linear = torch.cat([constant, of_square, 2 * ((1 + x2) * w - (1 + w2) * x)], -1)
        rows, columns = 1 / ((1 - x2) * (1 - w2)), 1 / (1 - t2)
        first = product(rows * linear, (columns * torch.cat([torch.ones_like(t2), t2, t], -1)).T)
        along = product(4 * rows * x, (columns * t).T), product(w, t.T)
        u2 = torch.addcmul(first, *along, value=-1)
        return (2 / scale).square() * arsinh_squared(u2)

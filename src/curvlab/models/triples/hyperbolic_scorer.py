"""What MuRP, RotH and AttH have in common: distances in the Poincare ball, by matrix products.

Parameters are tangent vectors at the origin. A ball of curvature kappa is the unit ball with
lengths times s = sqrt(-kappa): s exp0(v) is the unit ball's exp0(s v), and sums of points commute
with the factor. With u^2 = |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)) the distance is 2 arsinh(u) / s.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import Curvature, Stereographic
from curvlab.manifolds import stereographic as k_space
from curvlab.models.triple_scorer import TripleScorer, table

UNIT = -1.0


class HyperbolicScorer(TripleScorer):
    """score(h, r, t) = -distance(h moved by r, t)^2 + b_h + b_t.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        curvature: kappa, below 0, `[1]` of all relations or `[num_relations]`.
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
        """The unit ball, where queries lie at any curvature of the relation."""
        return Stereographic(kappa=UNIT, learnable=False)

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.entities.embedding_dim

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    @property
    def entity_points(self) -> Tensor:
        """Points exp0(s v) of the unit ball; s = 1 where each relation has a curvature."""
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


def squares(x: Tensor) -> Tensor:
    """Squared norms `[..., 1]` of vectors `[..., dim]`."""
    return x.square().sum(-1, keepdim=True)

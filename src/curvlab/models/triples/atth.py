"""AttH, "Low-dimensional hyperbolic knowledge graph embeddings".

Chami et al. 2020, arXiv:2005.00545.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import stereographic as k_space
from curvlab.models.triple_scorer import table
from curvlab.models.triples.hyperbolic_scorer import UNIT
from curvlab.models.triples.planes import reflect, rotate
from curvlab.models.triples.roth import RotH


class AttH(RotH):
    """RotH whose head is a mean of its rotation and its reflection, weighted by attention.

    q = exp0(sum of softmax(<a_r, z> / sqrt(dim)) z) (+) w_r over z = Rot_r(h), Ref_r(h), which are
    tangent vectors.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        **options: those of `RotH`.
    """

    def __init__(self, num_entities: int, num_relations: int, **options: Any) -> None:
        super().__init__(num_entities, num_relations, **options)
        self.reflections = table(num_relations, self.dim_out)
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

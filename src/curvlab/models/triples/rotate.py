"""RotatE, "Knowledge graph embedding by relational rotation in complex space".

Sun et al. 2019, arXiv:1902.10197.
"""

import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.layers.dropout import Dropout as DropoutLayer
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import TripleScorer, table
from curvlab.models.triples.distances import squared_distances
from curvlab.models.triples.planes import check_even, complex_product
from curvlab.options import Dropout, PositiveInt


class RotatE(FlatEncoder, TripleScorer):
    """score(h, r, t) = -|h o r - t| of complex vectors, r_i = exp(i theta_i): a rotation.

    The first half of an embedding is the real, the second the imaginary part; the distance is the
    Euclidean one, as in PyTorch Geometric, for which a matrix product is enough (the authors add
    up the moduli).

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings, even: real and imaginary parts.
        dropout: of the head.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        self.dim = dim
        check_even(dim)
        self.entities = table(num_entities, dim)
        self.angles = nn.Embedding(num_relations, dim // 2)
        nn.init.uniform_(self.angles.weight, -math.pi, math.pi)
        self.drop = DropoutLayer(dropout)

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return self.entities.num_embeddings

    @property
    def entity_points(self) -> Tensor:
        """The table of embeddings."""
        return self.entities.weight

    def forward(self, batch: Data) -> Tensor:
        """The rotated head, `[queries, dim]`."""
        angle = self.angles(batch.relation)
        rotation = torch.cat([angle.cos(), angle.sin()], -1)
        return complex_product(self.drop(self.entities(batch.head)), rotation)

    def scores(self, batch: Data) -> Tensor:
        """Minus distances `[queries, entities]`."""
        return self.row_scores(self(batch), self.entities.weight)

    def row_scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        """Minus distances `[queries, rows]`."""
        return -squared_distances(queries, rows).sqrt()

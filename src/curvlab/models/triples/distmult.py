"""DistMult, "Embedding entities and relations for learning and inference in knowledge bases".

Yang et al. 2015, arXiv:1412.6575.
"""

from torch import Tensor
from torch_geometric.data import Data

from curvlab.layers.dropout import Dropout as DropoutLayer
from curvlab.models.encoder import FlatEncoder
from curvlab.models.triple_scorer import DotProductScorer, table
from curvlab.options import Dropout, PositiveInt


class DistMult(FlatEncoder, DotProductScorer):
    """score(h, r, t) = sum_i h_i r_i t_i, the same for (t, r, h).

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        dim: width of the embeddings.
        dropout: of head and relation.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: PositiveInt = 64,
        dropout: Dropout = 0.2,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.entities = table(num_entities, dim)
        self.relations = table(num_relations, dim)
        self.drop = DropoutLayer(dropout)

    @property
    def candidates(self) -> Tensor:
        """Embeddings of all entities."""
        return self.entities.weight

    def forward(self, batch: Data) -> Tensor:
        """H r, `[queries, dim]`."""
        head = self.drop(self.entities(batch.head))
        return self.combine(head, self.drop(self.relations(batch.relation)))

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """The vector whose product with a tail is the score."""
        return head * relation

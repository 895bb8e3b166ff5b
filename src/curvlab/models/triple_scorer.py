"""What every model of knowledge-graph completion is to its task."""

from abc import abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.models.encoder import Encoder


class TripleScorer(Encoder):
    """Scores all entities as tails of queries (head, relation).

    A batch has `head` and `relation` `[queries]`; `forward` makes the embeddings of the queries
    `[queries, dim_out]`, points of `manifold_out`.
    """

    branch_names: Sequence[str] = ()
    """What a model with a router weighs."""

    @property
    def routing(self) -> Tensor | None:
        """Weights of the branches `[queries, branches]` in the last pass; None without a router."""
        return None

    @abstractmethod
    def scores(self, batch: Data) -> Tensor:
        """Scores `[queries, entities]`; larger is likelier."""


class DotProductScorer(TripleScorer):
    """A score is the dot product of a query's embedding and an entity's."""

    @property
    @abstractmethod
    def candidates(self) -> Tensor:
        """Embeddings of all entities as tails, `[entities, dim_out]`."""

    def scores(self, batch: Data) -> Tensor:
        """Scores `[queries, entities]`, one matrix product."""
        return self(batch) @ self.candidates.T


def table(rows: int, dim: int) -> nn.Embedding:
    """Embeddings `[rows, dim]`, Xavier uniform as in CAT, Section 5."""
    embedding = nn.Embedding(rows, dim)
    nn.init.xavier_uniform_(embedding.weight)
    return embedding

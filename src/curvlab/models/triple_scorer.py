"""What every model of knowledge-graph completion is to its task."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.models.encoder import Encoder


class TripleScorer(Encoder):
    """Scores all entities as tails of queries (head, relation).

    A batch has `head` and `relation` `[queries]`; `forward` makes the embeddings of the queries
    `[queries, dim_out]`, points of `manifold_out`.
    """

    tied = "it has an embedding for every entity"

    branch_names: Sequence[str] = ()
    """What a model with a router weighs."""

    @property
    def routing(self) -> Tensor | None:
        """Weights of the branches `[queries, branches]` in the last pass; None without a router."""
        return None

    def share_at_rim(self, batch: Data) -> Tensor:
        """Share of the points of triples that are at the rim of a ball; 0 without one.

        `batch.tail [queries]` has the tails of the queries.
        """
        return torch.zeros((), device=batch.head.device)

    @property
    @abstractmethod
    def num_entities(self) -> int:
        """Number of entities."""

    @property
    def entity_points(self) -> Tensor:
        """Embeddings of the entities as points of `manifold_out`, `[entities, dim_out]`.

        Raises:
            UsageError: the model has none.
        """
        raise UsageError(
            f"{type(self).__name__} has no embeddings of entities: export those of another model"
        )

    @abstractmethod
    def scores(self, batch: Data) -> Tensor:
        """Scores `[queries, entities]`; larger is likelier."""

    def row_scores(self, queries: Tensor, rows: Tensor) -> Tensor:  # noqa: ARG002
        """Scores `[queries, rows]` of what `forward` makes and any rows of the entities' table.

        Raises:
            UsageError: the scores need more of a query or an entity than these.
        """
        raise UsageError(
            f"{type(self).__name__}: its scores are no function of a query's embedding and a row "
            "of a table of entities, which shards need; a class with `row_scores` has such scores"
        )

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        """What makes the scores of a slice of the queries, and the tensors it makes them of.

        Here every block is a batch of its own, after which an `auxiliary_loss` would be the last
        block's: a model that has one makes its queries once, as `DotProductScorer` does.
        """

        def scores(rows: slice, *_: Tensor) -> Tensor:
            return self.scores(Data(head=batch.head[rows], relation=batch.relation[rows]))

        return scores, [p for p in self.parameters() if p.requires_grad]


class DotProductScorer(TripleScorer):
    """A score is the dot product of a query's embedding and an entity's."""

    @property
    @abstractmethod
    def candidates(self) -> Tensor:
        """Embeddings of all entities as tails, `[entities, dim_out]`."""

    @property
    def num_entities(self) -> int:
        """Number of entities."""
        return len(self.candidates)

    @property
    def entity_points(self) -> Tensor:
        """The embeddings that queries are multiplied with."""
        return self.candidates

    def scores(self, batch: Data) -> Tensor:
        """Scores `[queries, entities]`, one matrix product."""
        return self.row_scores(self(batch), self.candidates)

    def row_scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        """Dot products `[queries, rows]`."""
        return queries @ rows.T

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        """Products of the queries, which are made once, with the candidates."""

        def scores(rows: slice, queries: Tensor, candidates: Tensor) -> Tensor:
            return self.row_scores(queries[rows], candidates)

        return scores, (self(batch), self.candidates)


def table(rows: int, dim: int) -> nn.Embedding:
    """Embeddings `[rows, dim]`, Xavier uniform as in CAT, Section 5."""
    embedding = nn.Embedding(rows, dim)
    nn.init.xavier_uniform_(embedding.weight)
    return embedding

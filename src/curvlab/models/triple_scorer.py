"""The base of models of knowledge-graph completion."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.models.encoder import Encoder
from curvlab.options import EmbeddingInit


class TripleScorer(Encoder):
    """Scores all entities as tails of queries (head, relation).

    A batch has `head` and `relation` `[queries]`. `forward` returns embeddings of the queries
    `[queries, dim_out]`, points of `manifold_out`.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations; twice as many with their inverses.
        train_triples: Training triples `[3, triples]`: heads, relations, tails.

    Attributes:
        reciprocal: Whether inverse relations have separate embeddings.
    """

    tasks: tuple[str, ...] = ("kg_completion",)
    reciprocal = True
    transductive_reason = "it has an embedding for every entity"
    entities: nn.Embedding

    def check(self, batch: Data) -> None:
        if self.in_channels is not None:  # CAT on nodes
            return super().check(batch)
        if "head" not in batch or "relation" not in batch:
            raise UsageError(
                f"{type(self).__name__} scores triples: call it with a torch_geometric Data of "
                "head and relation, indices [queries]"
            )
        return None

    @property
    def num_entities(self) -> int:
        return self.entities.num_embeddings

    @property
    def entity_points(self) -> Tensor:
        """Embeddings of the entities as points of `manifold_out`, `[entities, dim_out]`."""
        return self.entities.weight

    @property
    def relation_tables(self) -> dict[str, Tensor]:
        """Tables `[rows, width]` of relations by name; rows of inverse relations come last."""
        tables = {}
        for path, module in self.named_modules():
            name = path.rpartition(".")[2]
            if isinstance(module, nn.Embedding) and name != "entities":
                tables[name] = module.weight
        return tables

    @abstractmethod
    def scores(self, batch: Data, candidates: Tensor | None = None) -> Tensor:
        """Scores `[queries, entities]` of the candidates or of all entities; larger is likelier."""

    def triple_scores(self, batch: Data) -> Tensor:  # noqa: ARG002
        """Scores `[triples]`; refused if the model can only score all entities at once."""
        raise UsageError(f"{type(self).__name__} scores all entities: set task.training=one_vs_all")

    def sampled_scores(
        self,
        triples: Data,
        samples: Sequence[Tensor],
        both_ends: bool = False,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """Scores `[triples, 1]` of triples and `[triples, samples]` of samples of each triple.

        Args:
            triples: The triples.
            samples: Heads, relations and tails `[triples, samples]` of the samples, in which one
                end of a triple is replaced.
            both_ends: Whether both ends may be replaced.
        """
        columns = torch.stack([triples.head, triples.relation, triples.tail])
        sample_columns = torch.stack(tuple(samples))
        head, relation, tail = torch.cat([columns.unsqueeze(2), sample_columns], 2)
        candidates = Data(head=head.flatten(), relation=relation.flatten(), tail=tail.flatten())
        scores = self.triple_scores(candidates).view_as(head)
        return scores[:, :1], scores[:, 1:]

    def tail_scores(self, triples: Data, tails: Tensor) -> Tensor:
        """Scores `[triples, samples]` of triples whose tails are replaced by `tails`, same shape.

        Dropout acts on each score independently.
        """
        head = triples.head.unsqueeze(1).expand_as(tails).flatten()
        relation = triples.relation.unsqueeze(1).expand_as(tails).flatten()
        candidates = Data(head=head, relation=relation, tail=tails.flatten())
        return self.triple_scores(candidates).view_as(tails)

    def moduli(self, batch: Data) -> Tensor:  # noqa: ARG002
        """Moduli `[3, triples, dim]` of the factors head, relation and tail, if there are any."""
        raise UsageError(f"{type(self).__name__} has no factors: drop task.regularizer")

    def table_moduli(self) -> dict[str, Tensor]:
        """Moduli of all rows of the tables `entities` and `relations`, if there are any."""
        raise UsageError(
            f"{type(self).__name__} has no tables to regularise: drop task.regularized_rows"
        )

    def triple_loss(self, loss: Callable[[], Tensor]) -> Tensor:
        """Loss of a training step on triples: the task's loss.

        A model with further terms overrides this.

        Args:
            loss: Function that computes the task's loss by the scoring methods of this class.
        """
        return loss()

    @property
    def statistic_names(self) -> Sequence[str]:
        """Names in `statistics` after queries have been scored."""
        return ()

    @property
    def router_branches(self) -> Sequence[str]:
        """Names of the branches that a router weighs; empty without a router."""
        return ()

    @property
    def routing(self) -> Tensor | None:
        """Weights `[queries, branches]` of the last pass, if a router weighs branches."""
        return None

    def sort_queries(self, batch: Data) -> Data:
        """Put the queries of a batch in the order in which they are scored fastest."""
        return batch

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:
        """Function that scores a slice of the queries, and the tensors that it takes.

        By default each block is a separate batch. A model whose `triple_loss` reads its queries
        computes them once, as `DotProductScorer` does.
        """

        def scores(rows: slice, *_: Tensor) -> Tensor:
            return self.scores(Data(head=batch.head[rows], relation=batch.relation[rows]))

        return scores, [p for p in self.parameters() if p.requires_grad]


class DotProductScorer(TripleScorer):
    """A score is the dot product of a query's embedding and an entity's."""

    @abstractmethod
    def tails(self, index: Tensor | None = None) -> Tensor:
        """Embeddings `[entities, dim_out]` of all entities as tails, or of `index`."""

    def scores(self, batch: Data, candidates: Tensor | None = None) -> Tensor:
        return self(batch) @ self.tails(candidates).T

    def triple_scores(self, batch: Data) -> Tensor:
        return (self(batch) * self.tails(batch.tail)).sum(-1)

    def tail_scores(self, triples: Data, tails: Tensor) -> Tensor:
        """Dropout acts once on each query, and once on each entity if all of them are scored."""
        query = self(triples)
        if tails.numel() < self.num_entities:
            return torch.linalg.vecdot(query.unsqueeze(1), self.tails(tails))
        return (query @ self.tails().T).gather(1, tails)

    def block_scores(self, batch: Data) -> tuple[Callable[..., Tensor], Sequence[Tensor]]:

        def scores(rows: slice, queries: Tensor, tails: Tensor) -> Tensor:
            return queries[rows] @ tails.T

        return scores, (self(batch), self.tails())


def table(rows: int, dim: int, init: EmbeddingInit = None, sparse: bool = False) -> nn.Embedding:
    """Embeddings `[rows, dim]`.

    `init` is x for uniform values in [-x, x]; [low, high] for uniform values in that interval;
    "xavier_normal"; or None for Xavier uniform (CAT, Section 5).
    """
    embedding = nn.Embedding(rows, dim, sparse=sparse)
    if init is None:
        nn.init.xavier_uniform_(embedding.weight)
    elif init == "xavier_normal":
        nn.init.xavier_normal_(embedding.weight)
    elif isinstance(init, int | float):
        nn.init.uniform_(embedding.weight, -init, init)
    else:
        low, high = init
        nn.init.uniform_(embedding.weight, low, high)
    return embedding


def check_even(dim: int) -> None:
    """Refuse an odd width, which has no halves."""
    if dim % 2:
        raise UsageError(f"dim={dim} must be even: its halves are one complex vector")

"""Regularisation of the embeddings of entities and relations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.models.triple_scorer import TripleScorer
from curvlab.options import TableWeights
from curvlab.tasks.triple_sampling import batch_triples

REGULARIZERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    # Lacroix et al. 2018, equation 7
    "n3": lambda moduli: moduli.pow(3).sum(-1) / 3,
    "l2": lambda moduli: moduli.square().sum(-1) / 2,
}
"""Costs `[...]` of the moduli `[..., dim]` of embeddings."""


def dura(moduli: Tensor, query: Tensor) -> Tensor:
    """Cost `[triples]` of a query's embedding and of its tail (Zhang et al. 2020, equation 5).

    The heads' cost is that of the tails of inverse relations.

    Args:
        moduli: moduli of heads, relations and tails `[3, triples, dim]`; the tails count.
        query: embeddings of the queries `[triples, dim]`.
    """
    tail = moduli[2]
    return query.square().sum(-1) + tail.square().sum(-1)


@dataclass(frozen=True)
class Regularization:
    """Cost of the embeddings of a batch's triples, or of all rows of the tables.

    Attributes:
        encoder: model to train.
        regularizer: `n3`, `l2` or `dura`; None for no cost.
        weight: weight of the cost, or of the costs of entities and relations.
        rows: rows that `n3` and `l2` cover: `batch` or `all`.
    """

    encoder: TripleScorer
    regularizer: Literal["n3", "l2", "dura"] | None
    weight: float | TableWeights
    rows: Literal["batch", "all"]

    def __post_init__(self) -> None:
        if self.rows == "all" and self.regularizer not in REGULARIZERS:
            raise UsageError("task.regularized_rows=all needs task.regularizer=l2 or n3")
        if self.rows == "all" and self.encoder.entities.sparse:
            raise UsageError(
                "task.regularized_rows=all changes every row in a step: set model.sparse=false"
            )
        if self.regularizer == "dura" and isinstance(self.weight, Mapping):
            raise UsageError("task.regularizer=dura has one weight: set task.regularization=0.01")
        if self.regularizer is None or self.rows == "batch":
            return
        tables = self.encoder.table_moduli()
        if "relations" not in tables and self.weights["relations"]:
            raise UsageError(
                f"{type(self.encoder).__name__} regularises entities alone: set "
                "task.regularization={entities: ..., relations: 0.0}"
            )

    @property
    def weights(self) -> Mapping[str, float]:
        """Weights of the costs of entities and relations."""
        if isinstance(self.weight, Mapping):
            return self.weight
        return {"entities": self.weight, "relations": self.weight}

    def __call__(self, batch: Data) -> Tensor:
        """Cost of a batch of queries."""
        assert self.regularizer is not None
        weights = self.weights
        if self.regularizer == "dura":
            triples = batch_triples(batch)
            costs = dura(self.encoder.moduli(triples), self.encoder(triples))
            return weights["entities"] * costs.mean()
        cost = REGULARIZERS[self.regularizer]
        if self.rows == "all":
            tables = self.encoder.table_moduli()
            sums = [weights[name] * cost(moduli).sum() for name, moduli in tables.items()]
            return torch.stack(sums).sum()
        head, relation, tail = cost(self.encoder.moduli(batch_triples(batch)))
        entity_costs = weights["entities"] * (head + tail)
        return (entity_costs + weights["relations"] * relation).mean()

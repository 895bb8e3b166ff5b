"""Queries of predictions, and the interface of a trained run that predictions need."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.manifolds import Manifold

PARTS = ("train", "val", "test")

Query = tuple[str | None, str | None, str | None]
"""Head, relation and tail by name. None marks what to predict; a triple without None is scored."""


@dataclass(frozen=True)
class PredictionQuery:
    """The nodes, links or triples to predict.

    Attributes:
        k: number of answers per node or query.
        nodes: nodes whose classes or links are predicted; None for all nodes.
        queries: queries of a knowledge graph.
        known: whether to list answers that are in the data; None: in knowledge graphs alone.
        unlabelled: predict nodes without a label only.
    """

    k: int = 10
    nodes: Sequence[str | int] | None = None
    queries: Sequence[Query] = ()
    known: bool | None = None
    unlabelled: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k={self.k}: ask for at least one answer")

    @property
    def given(self) -> list[str]:
        """Names of the fields other than `k` that are set."""
        values = {
            "nodes": self.nodes is not None,
            "queries": bool(self.queries),
            "known": self.known is not None,
            "unlabelled": self.unlabelled,
        }
        return [name for name, is_set in values.items() if is_set]


def refuse_unused(given: Iterable[str], used: Sequence[str], task: str) -> None:
    """Refuse fields of a query that a task's predictions do not use, which would be ignored."""
    words = {"queries": "head, relation, tail or pairs"}
    for name in given:
        if name not in used:
            raise UsageError(
                f"task={task} does not predict by {words.get(name, name)}: omit it, or give "
                f"{' or '.join(words.get(other, other) for other in used)}"
            )


class TrainedRun(Protocol):
    """A trained run, as predictions use it; implemented by `curvlab.run.finished_run.Run`.

    Attributes:
        config: resolved configuration of the run.
    """

    config: Any

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of nodes, classes, entities and relations."""

    @property
    def space(self) -> Manifold:
        """Space of the embeddings."""

    @property
    def device(self) -> torch.device:
        """Device of the model."""

    @property
    def data(self) -> Any:
        """Data module of the run's graph."""

    def prepare(self, graph: Data | None = None) -> Data:
        """Prepare a graph for the model; None for the run's graph."""

    def split(self, graph: Data) -> Data:
        """Split a graph as the run's graph was split."""

    def embed(self, graph: Data | None = None) -> Tensor:
        """Points `[nodes, dim]` in the order of the data set's nodes."""

    def ids(self, graph: Data | None = None) -> list[str]:
        """Names of the rows of `embed`."""

    def check_inductive(self) -> None:
        """Refuse another graph for a transductive model."""


def find_positions(names: Sequence[str | int] | None, ids: Sequence[str], kind: str) -> list[int]:
    """Find the positions of names in `ids`; None for all of them.

    Raises:
        UsageError: a name is not in `ids`; `kind` says what is named.
    """
    if names is None:
        return list(range(len(ids)))
    positions = {name: i for i, name in enumerate(ids)}
    for name in map(str, names):
        if name in positions:
            continue
        hint = f"there is {ids[0]!r}"
        matches = difflib.get_close_matches(name, ids, n=3)
        if matches:
            hint = f"did you mean {', '.join(matches)}?"
        raise UsageError(f"there is no {kind} {name!r} in the run's data; {hint}")
    return [positions[str(name)] for name in names]

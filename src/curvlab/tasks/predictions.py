"""Predictions of a trained model as tables with names: queries, and what tasks share."""

import difflib
from collections.abc import Sequence
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
"""Head, relation and tail by name; None for the end to predict, neither for a triple to score."""


@dataclass(frozen=True)
class PredictionQuery:
    """The nodes, links or triples to predict."""

    k: int = 10  # answers per node or query
    nodes: Sequence[str | int] | None = None  # whose classes or links; None for all nodes
    queries: Sequence[Query] = ()  # of a knowledge graph
    known: bool | None = None  # list answers that the data have; None: of knowledge graphs
    unlabelled: bool = False  # only nodes without a label

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k={self.k}: ask for at least one answer")


class Trained(Protocol):
    """What predictions need of a trained run: `curvlab.run.finished_run.Run` has it.

    Attributes:
        config: resolved configuration of the run.
    """

    config: Any

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of nodes, classes, entities and relations."""

    @property
    def space(self) -> Manifold:
        """The space of the embeddings."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""

    @property
    def data(self) -> Any:
        """The data module of the run's own graph."""

    def prepare(self, graph: Data | None = None) -> Data:
        """Prepare a graph for the model; None for the run's own."""

    def split(self, graph: Data) -> Data:
        """Split a graph as the run's task does."""

    def embed(self, graph: Data | None = None) -> Tensor:
        """Points `[nodes, dim]` in the order of the data set's nodes."""

    def ids(self, graph: Data | None = None) -> list[str]:
        """Names of the rows of `embed`."""

    def check_inductive(self) -> None:
        """Refuse another graph for a transductive model."""


def positions_of(names: Sequence[str | int] | None, known: Sequence[str], what: str) -> list[int]:
    """Positions of names among the known ones, all for None; refuses an unknown name."""
    if names is None:
        return list(range(len(known)))
    positions = {name: i for i, name in enumerate(known)}
    for name in map(str, names):
        if name not in positions:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"there is {known[0]!r}"
            raise UsageError(f"there is no {what} {name!r} in the run's data; {hint}")
    return [positions[str(name)] for name in names]

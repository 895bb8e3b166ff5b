"""Predictions of a trained model as tables with names: queries, and what tasks share."""

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix, to_undirected

from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.manifolds import Manifold
from curvlab.metrics.coincidence import coincident_nodes
from curvlab.metrics.ranking import ranks_among
from curvlab.program import with_progress

ENTRIES = 2**24
"""Scores held at a time while all pairs are scored."""

TILE = 2**17
"""Scores made at a time, which stay in a processor's cache."""

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
    """What predictions need of a trained run: `curvlab.run.load.Run` has it.

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


def largest_of_rows(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row `[rows, count]`, descending, and their columns.

    They are in the blocks with the largest maxima, which are found faster than by sorting rows.
    """
    columns = values.shape[1]
    size = math.isqrt(columns // count)
    blocks = columns // max(size, 1)
    if blocks <= 4 * count:
        largest = values.topk(count, dim=1)
        return largest.values, largest.indices
    whole = blocks * size
    maxima = values[:, :whole].unflatten(1, (blocks, size)).amax(dim=2)
    first = maxima.topk(count, dim=1).indices[:, :, None] * size
    inside = (first + torch.arange(size)).flatten(1)
    rest = torch.arange(whole, columns).expand(len(values), -1)
    places = torch.cat([inside, rest], dim=1)
    best, at = values.gather(1, places).topk(count, dim=1)
    return best, places.gather(1, at)


def ranks_of_best(best: Tensor, values: Tensor, count: int) -> Tensor:
    """Ranks `[rows, count]` of the largest values of each row; the mean rank where they are tied.

    Only the last of them can be tied with a value that is not among them. `best` has one value
    more where there is one: rows in which it is less need no look at all values.
    """
    kept = best[:, :count].contiguous()
    rank = ranks_among(kept, kept)
    if best.shape[1] == count:
        return rank
    for row in (best[:, count] == kept[:, -1]).nonzero().flatten().tolist():
        last = kept[row] == kept[row, -1]
        beyond = torch.count_nonzero(values[row] == kept[row, -1]) - last.sum()
        rank[row] += last * beyond / 2
    return rank


def likeliest_links(
    run: Trained,
    graph: Data | None,
    query: PredictionQuery,
    scores: Callable[[Tensor, Tensor], Tensor],
) -> pd.DataFrame:
    """The k pairs of each node with the highest scores, some rows at a time.

    Columns: `node`, `neighbour`, `rank`, `score`, and whether the link is `known`. Tied pairs have
    the mean of their ranks, those that are not listed included. Pairs are tied if their points
    coincide (`coincident_nodes`). `scores` maps points `[rows, dim]` and `[nodes, dim]` to
    `[rows, nodes]`.
    """
    ids = run.ids(graph)
    points = run.embed(graph)
    same = coincident_nodes(points).cpu()
    chosen = torch.tensor(positions_of(query.nodes, ids, "node"))
    graph = run.data.graph if graph is None else graph
    held_out = [graph[f"{part}_edges"] for part in PARTS if f"{part}_edges" in graph]
    both_ways = to_undirected(torch.cat([graph.edge_index, *held_out], dim=1), num_nodes=len(ids))
    edges = to_scipy_sparse_matrix(both_ways, num_nodes=len(ids)).tocsr()
    copies = (same != torch.arange(len(ids))).nonzero().squeeze(1)
    kept = list[list[Tensor]]()
    parts = chosen.split(max(1, ENTRIES // len(ids)))
    count = min(query.k, len(ids))
    all_scores = torch.empty(len(parts[0]), len(ids), dtype=torch.float32)
    for rows in with_progress(parts, f"links of {len(chosen):,} nodes"):
        tile = all_scores[: len(rows)]
        sources = points[same[rows]]
        width = TILE // max(1, len(rows)) + 1
        for columns, targets in zip(tile.split(width, 1), points.split(width), strict=True):
            columns.copy_(scores(sources, targets))
        tile[:, copies] = tile[:, same[copies]]
        of_row, known = (torch.from_numpy(each).long() for each in edges[rows.numpy()].nonzero())
        if not query.known:
            tile[of_row, known] = -torch.inf
        tile[torch.arange(len(rows)), rows] = -torch.inf
        best, places = largest_of_rows(tile, min(count + 1, len(ids)))
        ranks = ranks_of_best(best, tile, count)
        best, places = best[:, :count], places[:, :count]
        is_known = torch.zeros_like(places, dtype=torch.bool)
        if query.known:
            marks = torch.zeros_like(tile, dtype=torch.bool)
            marks[of_row, known] = True
            is_known = marks.gather(1, places)
        answers = (rows[:, None].expand_as(places), places, ranks, best)
        is_pair = best != -torch.inf  # NaN is for the caller to refuse
        kept.append([each[is_pair] for each in (*answers, is_known)])
    node, neighbour, rank, score, is_known = (torch.cat(parts) for parts in zip(*kept, strict=True))
    nodes, neighbours = ([ids[i] for i in end.tolist()] for end in (node, neighbour))
    table = pd.DataFrame({"node": nodes, "neighbour": neighbours})
    return table.assign(rank=rank.numpy(), score=score.numpy(), known=is_known.numpy())

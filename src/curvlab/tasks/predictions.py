"""Predictions of a trained model as tables with names: queries, and what tasks share."""

import difflib
from collections.abc import Sequence
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
from curvlab.tasks.largest import largest_of_rows, ranks_of_best
from curvlab.tasks.link_screen import LinkScreen, Scores

ENTRIES = 2**23
"""Scores held at a time while all pairs are scored."""

TILE = 2**17
"""Scores made at a time, which stay in a processor's cache."""

SCREENED = 64
"""Candidates are screened (`LinkScreen`) on graphs of more than this times k + 8 nodes."""

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


def likeliest_links(
    run: Trained,
    graph: Data | None,
    query: PredictionQuery,
    scores: Scores,
    pairwise_scores: Scores,
) -> pd.DataFrame:
    """The k pairs of each node with the highest scores, some rows at a time.

    Columns: `node`, `neighbour`, `rank`, `score`, and whether the link is `known`. Tied pairs have
    the mean of their ranks, those that are not listed included. Pairs are tied if their points
    coincide (`coincident_nodes`).

    Args:
        run: trained run.
        graph: graph to predict on; None for the run's own.
        query: nodes whose links are predicted.
        scores: scores of points that broadcast, larger for nearer points.
        pairwise_scores: the same scores of points `[rows, dim]` and `[nodes, dim]`,
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
    count = min(query.k, len(ids))
    parts = chosen.split(max(1, ENTRIES // len(ids)))
    all_scores = torch.empty(len(parts[0]), len(ids), dtype=torch.float32)

    def known_links(rows: Tensor) -> tuple[Tensor, Tensor]:
        """Row and column of each known link."""
        row, column = edges[rows.numpy()].nonzero()
        return torch.from_numpy(row).long(), torch.from_numpy(column).long()

    def hide(tile: Tensor, rows: Tensor) -> None:
        """Mark pairs that are no answers."""
        if not query.known:
            tile[known_links(rows)] = -torch.inf
        tile[torch.arange(len(rows)), rows] = -torch.inf

    def best_of_all(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, columns and ranks of the best pairs, by the scores of all."""
        tile = all_scores[: len(rows)]
        sources = points[same[rows]]
        width = TILE // max(1, len(rows)) + 1
        for columns, targets in zip(tile.split(width, 1), points.split(width), strict=True):
            columns.copy_(pairwise_scores(sources, targets))
        tile[:, copies] = tile[:, same[copies]]
        hide(tile, rows)
        best, places = largest_of_rows(tile, min(count + 1, len(ids)))
        return best[:, :count], places[:, :count], ranks_of_best(best, tile, count)

    screen = LinkScreen(run.space, points, same)
    screening = screen.applies and len(ids) > SCREENED * (count + 8)
    kept = list[list[Tensor]]()
    for rows in with_progress(parts, f"links of {len(chosen):,} nodes"):
        if screening:
            tile = all_scores[: len(rows)]
            screen.fill(rows, tile)
            hide(tile, rows)
            best, places, certain = screen.best(rows, tile, count, scores)
            ranks = ranks_among(best, best)
            others = (~certain).nonzero().squeeze(1)
            if len(others):
                best[others], places[others], ranks[others] = best_of_all(rows[others])
            screening = 2 * len(others) <= len(rows)  # else it costs more than it saves
        else:
            best, places, ranks = best_of_all(rows)
        numbers = torch.arange(len(rows))[:, None] * len(ids) + places
        row, column = known_links(rows)
        is_known = torch.isin(numbers, row * len(ids) + column)
        answers = (rows[:, None].expand_as(places), places, ranks, best, is_known)
        is_pair = best != -torch.inf  # NaN is for the caller to refuse
        kept.append([each[is_pair] for each in answers])
    node, neighbour, rank, score, is_known = (torch.cat(parts) for parts in zip(*kept, strict=True))
    nodes, neighbours = ([ids[i] for i in end.tolist()] for end in (node, neighbour))
    table = pd.DataFrame({"node": nodes, "neighbour": neighbours})
    return table.assign(rank=rank.numpy(), score=score.numpy(), known=is_known.numpy())

"""The likeliest links of each node, some rows of all pairs at a time."""

from typing import NamedTuple

import pandas as pd
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix, to_undirected

from curvlab.metrics.coincidence import coincident_nodes
from curvlab.program import print_progress
from curvlab.tasks.largest import largest_of_rows
from curvlab.tasks.link_screen import TILE, LinkScreen, Scores
from curvlab.tasks.predictions import PARTS, PredictionQuery, Trained, positions_of

ENTRIES = 2**23
"""Scores held at a time while all pairs are scored."""

SCREENED = 64
"""Candidates are screened (`LinkScreen`) among more than this times k + 8 points."""


def likeliest_links(
    run: Trained,
    graph: Data | None,
    query: PredictionQuery,
    scores: Scores,
    pairwise_scores: Scores,
) -> pd.DataFrame:
    """The k pairs of each node with the highest scores.

    Columns: `node`, `neighbour`, `rank`, `score`, and whether the link is `known`. Tied pairs have
    the mean of their ranks, those that are not listed included. Pairs are tied if their points
    coincide (`coincident_nodes`).

    Args:
        run: trained run.
        graph: graph to predict on; None for the run's own.
        query: nodes whose links are predicted.
        scores: scores of points that broadcast, larger for nearer points.
        pairwise_scores: the same scores of points `[rows, dim]` and `[places, dim]`,
            `[rows, places]`.
    """
    ids = run.ids(graph)
    embedded = run.embed(graph)
    places = Places(coincident_nodes(embedded).cpu())
    points = embedded[places.nodes]
    chosen = torch.tensor(positions_of(query.nodes, ids, "node"))
    links = _links(run.data.graph if graph is None else graph, len(ids))
    count = min(query.k, len(ids))
    parts = torch.arange(len(chosen)).split(max(1, ENTRIES // len(points)))
    room = torch.empty(len(parts[0]), len(points), dtype=torch.float32)

    def answers_of(rows: Tensor) -> Answers:
        return Answers(places, rows, chosen[rows], links, count, bool(query.known))

    def best_of_all(answers: Answers) -> Listed:
        """The best answers by the scores of all pairs."""
        tile = room[: len(answers.rows)]
        sources = points[answers.at]
        width = TILE // len(tile) + 1
        for columns, targets in zip(tile.split(width, 1), points.split(width), strict=True):
            columns.copy_(pairwise_scores(sources, targets))
        answers.hide(tile)
        values, at = largest_of_rows(tile, min(count + 1, len(points)))
        return answers.listed(values, at, answers.tied_beyond(values, at, tile))

    screen = LinkScreen(run.space, points)
    screening = screen.applies and len(points) > SCREENED * (count + 8)
    found = list[Listed]()
    for rows in print_progress(parts, f"links of {len(chosen):,} nodes"):
        uncertain = rows
        if screening:
            answers = answers_of(rows)
            tile = room[: len(rows)]
            screen.fill(answers.at, tile)
            answers.hide(tile)
            candidates = screen.candidates(answers.at, tile, 4 * count + 32, scores)
            certain = answers.are_certain(*candidates)
            uncertain = rows[~certain]
            screening = 2 * len(uncertain) <= len(rows)  # else it costs more than it saves
            answers = answers_of(rows[certain])
            found.append(answers.listed(candidates.values[certain], candidates.at[certain]))
        if len(uncertain):
            found.append(best_of_all(answers_of(uncertain)))
    row, neighbour, rank, score, is_known = (torch.cat(each) for each in zip(*found, strict=True))
    order = row.argsort(stable=True)
    table = pd.DataFrame({"node": [ids[i] for i in chosen[row[order]].tolist()]})
    table["neighbour"] = [ids[i] for i in neighbour[order].tolist()]
    table["rank"] = rank[order].numpy()
    table["score"] = score[order].numpy()
    table["known"] = is_known[order].numpy()
    return table


def _links(graph: Data, num_nodes: int) -> csr_matrix:
    """Links of a graph in both directions, those of all its parts included."""
    held_out = [graph[f"{part}_edges"] for part in PARTS if f"{part}_edges" in graph]
    edges = torch.cat([graph.edge_index, *held_out], dim=1)
    both_ways = to_undirected(edges, num_nodes=num_nodes)
    return to_scipy_sparse_matrix(both_ways, num_nodes=num_nodes).tocsr()


class Places:
    """The distinct points of nodes.

    Attributes:
        nodes: a node at each place `[places]`.
        at: the place of each node `[nodes]`.
        sizes: number of nodes at each place.

    Args:
        same: number of the node that stands for each node's point, `[nodes]`.
    """

    def __init__(self, same: Tensor) -> None:
        self.nodes, self.at, self.sizes = same.unique(return_inverse=True, return_counts=True)
        self._by_place = self.at.argsort(stable=True)
        self._starts = self.sizes.cumsum(0) - self.sizes

    def first_nodes(self, at: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The first nodes at places, as many as `counts` has, and the index of each one's place."""
        index = torch.arange(len(at)).repeat_interleave(counts)
        number = torch.arange(len(index)) - (counts.cumsum(0) - counts)[index]
        return self._by_place[self._starts[at[index]] + number], index


class Listed(NamedTuple):
    """Answers: the row, the node, its rank and score, and whether the link is known."""

    rows: Tensor
    nodes: Tensor
    ranks: Tensor
    scores: Tensor
    are_known: Tensor


class Answers:
    """The nodes to which some nodes can be linked, by places.

    Scores `values` of places `at`, both `[rows, columns]`, are descending in each row.

    Attributes:
        rows: numbers of the rows.
        at: place of the node of each row.

    Args:
        places: places of all nodes.
        rows: numbers of the rows.
        nodes: node of each row.
        links: known links.
        count: number of answers of a row.
        known: whether a known link is an answer.
    """

    def __init__(
        self,
        places: Places,
        rows: Tensor,
        nodes: Tensor,
        links: csr_matrix,
        count: int,
        known: bool,
    ) -> None:
        self.rows = rows
        self.at = places.at[nodes]
        self._places = places
        self._count = count
        row, node = (torch.from_numpy(ends).long() for ends in links[nodes.numpy()].nonzero())
        self._known = self._pairs(row, node)
        self._hidden = self._pairs(torch.arange(len(rows)), nodes)
        if not known:
            self._hidden = torch.cat([self._hidden, self._known]).unique()
        row, node = self._hidden // len(places.at), self._hidden % len(places.at)
        hidden_at = row * len(places.nodes) + places.at[node]
        self._hidden_at, self._hidden_counts = hidden_at.unique(return_counts=True)

    def _pairs(self, row: Tensor, node: Tensor) -> Tensor:
        """A number for each pair of a row and a node."""
        return row * len(self._places.at) + node

    def hide(self, tile: Tensor) -> None:
        """Mark places without an answer in `[rows, places]`."""
        row, place = self._hidden_at // tile.shape[1], self._hidden_at % tile.shape[1]
        whole = self._hidden_counts == self._places.sizes[place]
        tile[row[whole], place[whole]] = -torch.inf

    def _free(self, row: Tensor, at: Tensor) -> Tensor:
        """How many nodes at places are answers of rows, which broadcast."""
        wanted = row * len(self._places.nodes) + at
        index = torch.searchsorted(self._hidden_at, wanted)
        index.clamp_max_(len(self._hidden_at) - 1)
        hidden = self._hidden_counts[index] * (self._hidden_at[index] == wanted)
        return self._places.sizes[at] - hidden

    def _free_of_rows(self, at: Tensor) -> Tensor:
        return self._free(torch.arange(len(at))[:, None], at)

    def _last(self, values: Tensor, through: Tensor) -> Tensor:
        """Score of each row's last answer, `[rows, 1]`, by the answers through each column."""
        column = (through < self._count).sum(1, keepdim=True)
        return values.gather(1, column.clamp_max(values.shape[1] - 1))

    def are_certain(self, values: Tensor, at: Tensor, is_nearest: Tensor) -> Tensor:
        """Rows in which a candidate behind the answers and their ties is nearer than all others."""
        last = self._last(values, self._free_of_rows(at).cumsum(1))
        return (is_nearest & (values < last)).any(1)

    def tied_beyond(self, values: Tensor, at: Tensor, tile: Tensor) -> Tensor:
        """Answers at no place of `at` whose scores in `tile` are tied with the last answer's."""
        free = self._free_of_rows(at)
        last = self._last(values, free.cumsum(1))
        beyond = torch.zeros(len(at), dtype=torch.long)
        is_open = (values[:, -1:] == last) & last.isfinite()
        for row in is_open.squeeze(1).nonzero().flatten():
            tied_at = (tile[row] == last[row]).nonzero().squeeze(1)
            beyond[row] = self._free(row, tied_at).sum() - free[row][values[row] == last[row]].sum()
        return beyond

    def listed(self, values: Tensor, at: Tensor, tied_beyond: Tensor | None = None) -> Listed:
        """The best answers, ordered by rows and scores; tied ones have the mean of their ranks."""
        free = self._free_of_rows(at)
        through = free.cumsum(1)
        before = F.pad(through, (1, 0))
        better, not_worse = (
            before.gather(1, torch.searchsorted(-values, -values, right=right))
            for right in (False, True)
        )
        tied = not_worse - better
        if tied_beyond is not None:
            tied += tied_beyond[:, None] * (values == self._last(values, through))
        ranks = better + (tied + 1) / 2
        counts = (self._count - before[:, :-1]).clamp_min(0).minimum(free)
        row, column = counts.nonzero(as_tuple=True)
        node, index = self._free_nodes(row, at[row, column], counts[row, column])
        row, column = row[index], column[index]
        are_known = torch.isin(self._pairs(row, node), self._known)
        return Listed(self.rows[row], node, ranks[row, column], values[row, column], are_known)

    def _free_nodes(self, row: Tensor, at: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        """The first free nodes at places of rows, and the index of each's row and place."""
        hidden = self._places.sizes[at] - self._free(row, at)
        node, index = self._places.first_nodes(at, counts + hidden)
        free = ~torch.isin(self._pairs(row[index], node), self._hidden)
        node, index = node[free], index[free]
        found = torch.bincount(index, minlength=len(at))
        number = torch.arange(len(index)) - (found.cumsum(0) - found)[index]
        first = number < counts[index]
        return node[first], index[first]

"""The likeliest links of each node, some rows of all pairs at a time."""

import pandas as pd
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix, to_undirected

from curvlab.metrics.coincidence import coincident_nodes
from curvlab.program import print_progress
from curvlab.tasks.link_answers import Answers, DistinctPoints, RankedLinks
from curvlab.tasks.link_screen import TILE, LinkScreen, ScoreFunction
from curvlab.tasks.predictions import PARTS, PredictionQuery, TrainedRun, find_positions
from curvlab.tasks.topk import row_topk

ENTRIES = 2**23
"""Number of scores held at a time while all pairs are scored."""

SCREEN_FACTOR = 64
"""Candidates are screened (`LinkScreen`) if there are more than this times k + 8 points."""


def likeliest_links(
    run: TrainedRun,
    graph: Data | None,
    query: PredictionQuery,
    scores: ScoreFunction,
    pairwise_scores: ScoreFunction,
) -> pd.DataFrame:
    """The k pairs of each node with the highest scores.

    Columns: `node`, `neighbour`, `rank`, `score`, and whether the link is `known`. Ties have the
    mean of their ranks, including ties that are not listed. Pairs are tied if their points coincide
    (`coincident_nodes`).

    Args:
        run: trained run.
        graph: graph to predict on; None for the run's own.
        query: nodes whose links are predicted.
        scores: scores of points that broadcast, larger for nearer points.
        pairwise_scores: the same scores of points `[rows, dim]` and `[points, dim]`,
            `[rows, points]`.
    """
    ids = run.ids(graph)
    embeddings = run.embed(graph)
    distinct = DistinctPoints(coincident_nodes(embeddings).cpu())
    points = embeddings[distinct.representatives]
    query_nodes = torch.tensor(find_positions(query.nodes, ids, "node"))
    links = _links(run.data.graph if graph is None else graph, len(ids))
    count = min(query.k, len(ids))
    blocks = torch.arange(len(query_nodes)).split(max(1, ENTRIES // len(points)))
    buffer = torch.empty(len(blocks[0]), len(points), dtype=torch.float32)

    def answers(rows: Tensor) -> Answers:
        return Answers(distinct, rows, query_nodes[rows], links, count, bool(query.known))

    def rank_all_pairs(rows: Tensor) -> RankedLinks:
        """Rank the answers of rows by the scores of all pairs."""
        row_answers = answers(rows)
        tile = buffer[: len(rows)]
        sources = points[row_answers.row_points]
        width = TILE // len(tile) + 1
        for start in range(0, len(points), width):
            columns = slice(start, start + width)
            tile[:, columns] = pairwise_scores(sources, points[columns])
        row_answers.hide(tile)
        values, index = row_topk(tile, min(count + 1, len(points)))
        further_ties = row_answers.count_further_ties(values, index, tile)
        return row_answers.rank(values, index, further_ties)

    screen = LinkScreen(run.space, points)
    use_screen = screen.applies and len(points) > SCREEN_FACTOR * (count + 8)
    results = list[RankedLinks]()
    for rows in print_progress(blocks, f"links of {len(query_nodes):,} nodes"):
        uncertain_rows = rows
        if use_screen:
            row_answers = answers(rows)
            sources = row_answers.row_points
            tile = buffer[: len(rows)]
            screen.fill(sources, tile)
            row_answers.hide(tile)
            candidates = screen.candidates(sources, tile, 4 * count + 32, scores)
            is_certain = row_answers.are_certain(*candidates)
            values = candidates.values[is_certain]
            neighbours = candidates.points[is_certain]
            results.append(answers(rows[is_certain]).rank(values, neighbours))
            uncertain_rows = rows[~is_certain]
            # Screening pays only if it decides at least half of the rows.
            use_screen = 2 * len(uncertain_rows) <= len(rows)
        if len(uncertain_rows):
            results.append(rank_all_pairs(uncertain_rows))
    row, neighbour, rank, score, is_known = (
        torch.cat(column) for column in zip(*results, strict=True)
    )
    order = row.argsort(stable=True)
    return pd.DataFrame(
        {
            "node": [ids[i] for i in query_nodes[row[order]].tolist()],
            "neighbour": [ids[i] for i in neighbour[order].tolist()],
            "rank": rank[order].numpy(),
            "score": score[order].numpy(),
            "known": is_known[order].numpy(),
        }
    )


def _links(graph: Data, num_nodes: int) -> csr_matrix:
    """Links of a graph in both directions, including the links of all its parts."""
    part_edges = [graph[f"{part}_edges"] for part in PARTS if f"{part}_edges" in graph]
    edges = torch.cat([graph.edge_index, *part_edges], dim=1)
    both_directions = to_undirected(edges, num_nodes=num_nodes)
    return to_scipy_sparse_matrix(both_directions, num_nodes=num_nodes).tocsr()

"""Ranks of the triples of a part of a knowledge graph, one block of queries at a time."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import MASKS, KnownTails
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.metrics.ranking import (
    RankCounts,
    Ties,
    rank_counts,
    ranking_metrics,
    ranks,
)
from curvlab.models.triple_scorer import TripleScorer
from curvlab.process import all_reduce_sum, local_shard

EVALUATION_ENTRIES = 2**22
"""Number of scores that evaluation holds at a time."""

RAW = ("mrr", "hits10")
"""Metrics of raw ranks and of one side."""


class PartRanking:
    """Ranking of the queries of a part of a knowledge graph by the scores of a model.

    Every triple (h, r, t) of the part is the query (h, r, ?). If the graph has `PART_negatives`
    `[2, triples, samples]`, the query's candidates are its samples, and (?, r, t) is a query too
    unless there are inverse relations. Otherwise all entities are candidates.

    Attributes:
        triples: positions of the queries' triples in the graph `[queries]`.
        ranks_head: whether a query ranks heads `[queries]`.
        counts: filtered and raw `RankCounts` after `run`, `[queries, 6]`; NaN if the scores of a
            query's block are not finite.
        statistics: means of the model's `statistics` over the queries, after `run`.
    """

    counts: Tensor
    statistics: dict[str, Tensor]

    def __init__(
        self, encoder: TripleScorer, graph: Data, part: str, inverse_relations: bool
    ) -> None:
        self.encoder = encoder
        self.inverse_relations = inverse_relations
        self.triples, self.ranks_head = part_queries(graph, part, inverse_relations)
        head, tail = graph.edge_index[:, self.triples]
        columns = {"head": head, "relation": graph.edge_type[self.triples], "tail": tail}
        negatives = graph.get(f"{part}_negatives")
        self.has_samples = negatives is not None
        self._known: KnownTails | None = None
        if negatives is None:
            reads = ("edge_index", "edge_type")
            self._known = SparseGraph.from_data(graph).derive("known_tails", reads, _known_tails)
            candidates = graph.num_nodes
        else:
            columns["negatives"] = negatives.flatten(0, 1)
            columns["replaces_head"] = self.ranks_head & (not inverse_relations)
            candidates = negatives.shape[2] * encoder.dim_out
        self._size = max(1, EVALUATION_ENTRIES // candidates)
        self._blocks = query_blocks(self._size, **columns)

    @torch.no_grad()
    def run(self) -> None:
        """Score all queries. The processes of a group share the blocks of queries."""
        counts = self.triples.new_zeros(len(self.triples), 6, dtype=torch.float64)
        names = self.encoder.statistic_names
        dtype = torch.get_default_dtype()
        sums = self.triples.new_zeros(len(self._blocks), len(names), dtype=dtype)
        for i in local_shard(range(len(self._blocks))):
            queries = self._blocks[i]
            rows = slice(i * self._size, (i + 1) * self._size)
            # Half precision would make ties.
            with torch.autocast(counts.device.type, enabled=False):
                counts[rows] = self._block_counts(queries)
                statistics = self.encoder.statistics(queries)
                for column, name in enumerate(names):
                    sums[i, column] = len(queries.head) * statistics[name]
        self.counts = all_reduce_sum(counts)
        means = all_reduce_sum(sums).sum(0) / len(self.triples)
        self.statistics = dict(zip(names, means, strict=True))

    def non_finite_block(self) -> Data | None:
        """The first block of queries with a score that is not finite."""
        is_non_finite = ~self.counts.isfinite().all(1)
        if not is_non_finite.any():
            return None
        row = int(is_non_finite.float().argmax())
        return self._blocks[row // self._size]

    def rank_counts(self) -> dict[str, RankCounts]:
        """Counts by the type of ranking: `filtered` and `raw`, or `sampled`."""
        filtered = RankCounts(*self.counts[:, :3].T)
        if self.has_samples:
            return {"sampled": filtered}
        return {"filtered": filtered, "raw": RankCounts(*self.counts[:, 3:].T)}

    def metrics(self, ties: Ties, hits: Sequence[int]) -> dict[str, Tensor]:
        """Metrics of the ranks, and the model's statistics."""
        counts = self.rank_counts()
        rank = ranks(counts["sampled" if self.has_samples else "filtered"], ties)
        values = ranking_metrics(rank, hits)
        groups = {}
        if "raw" in counts:
            groups["raw"] = ranks(counts["raw"], ties)
        if self.inverse_relations or self.has_samples:
            groups["tail"] = rank[~self.ranks_head]
            groups["head"] = rank[self.ranks_head]
        for group, group_ranks in groups.items():
            metrics = ranking_metrics(group_ranks)
            for name in RAW:
                values[f"{group}_{name}"] = metrics[name]
        # Flat models have no such statistic.
        at_rim = torch.zeros((), dtype=torch.get_default_dtype(), device=rank.device)
        return {**values, "at_rim": at_rim, **self.statistics}

    def scores(self, queries: Data) -> Tensor:
        """Scores `[queries, candidates]`: of all entities, or of the answer and its samples."""
        if not self.has_samples:
            return self.encoder.scores(queries)
        replaces_head = queries.replaces_head.unsqueeze(1)
        head = queries.head.unsqueeze(1)
        tail = queries.tail.unsqueeze(1)
        relation = queries.relation.unsqueeze(1)
        answer = head.where(replaces_head, tail)
        candidates = torch.cat([answer, queries.negatives], 1)
        triples = Data(
            head=candidates.where(replaces_head, head).flatten(),
            relation=relation.expand_as(candidates).flatten(),
            tail=tail.where(replaces_head, candidates).flatten(),
        )
        return self.encoder.triple_scores(triples).view_as(candidates)

    def _block_counts(self, queries: Data) -> Tensor:
        """Filtered and raw counts `[queries, 6]`; NaN if a score is not finite."""
        scores = self.scores(queries)
        if self._known is None:
            answer = torch.zeros_like(queries.tail)
            filtered, raw = rank_counts(scores, answer)
        else:
            known = self._known.lookup(queries.head, queries.relation)
            filtered, raw = rank_counts(scores, queries.tail, known)
        counts = torch.stack([*filtered, *raw], 1)
        # Comparisons with NaN are false, which would give rank 1.
        return counts.where(scores.sum().isfinite(), torch.nan)


def part_queries(graph: Data, part: str, inverse_relations: bool) -> tuple[Tensor, Tensor]:
    """Positions of the queries' triples, and whether a query ranks heads.

    Queries that rank heads come last. With inverse relations, these are the triples of inverse
    relations.
    """
    triples = graph[MASKS[part]].nonzero().squeeze(1)
    if inverse_relations:
        return triples, graph.edge_type[triples] >= len(graph.relation_names) // 2
    ranks_head = torch.zeros_like(triples, dtype=torch.bool)
    if f"{part}_negatives" not in graph:
        return triples, ranks_head
    return triples.repeat(2), torch.cat([ranks_head, ~ranks_head])


def query_blocks(size: int, **columns: Tensor) -> list[Data]:
    """Columns of queries as batches of at most `size` queries, and at least one.

    Args:
        size: largest number of queries of a batch.
        **columns: `head`, `relation` and `tail`, and further columns `[queries, ...]`.
    """
    parts = [column.split(max(1, size)) for column in columns.values()]
    blocks = []
    for rows in zip(*parts, strict=True):
        block = Data(**dict(zip(columns, rows, strict=True)))
        block.query = torch.arange(len(block.head), device=block.head.device)
        blocks.append(block)
    return blocks


def _known_tails(graph: Data) -> KnownTails:
    head, tail = graph.edge_index
    return KnownTails(head, graph.edge_type, tail, len(graph.relation_names))

"""Ranks of a knowledge graph's test queries as one table, and metrics of groups of its rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.vocabulary import vocabulary_of
from curvlab.files import atomic_path, atomic_write
from curvlab.metrics.ranking import HITS, TIES, RankCounts, ranks

FILE = "ranks.csv.gz"
TABLE = "rankings.csv"
RELATIONS = "relations.csv"
GROUPS = ("relation", "category", "frequency")
"""Columns of the table of ranks, besides side and type, that split the queries."""

MANY = 1.5  # mean number of heads per tail, or tails per head, from which a relation's side is N


def rank_table(
    graph: Data, part: Tensor, head_side: Tensor, counts: Mapping[str, RankCounts]
) -> pd.DataFrame:
    """One row per query and type of ranking, a key of `counts`; `side` is the end that is ranked.

    `category` of the relation is 1-1, 1-N, N-1 or N-N (Bordes et al. 2013); `frequency` the number
    of training triples of the ranked entity, rounded down to a power of ten. Queries `part` of
    inverse relations are written as triples of the relation itself.
    """
    names = graph.relation_names
    base = len(names) // (2 if graph.get("inverse_relations") else 1)
    ends = graph.edge_index.cpu().numpy()
    relation = graph.edge_type.cpu().numpy()
    train = graph.train_mask.cpu().numpy() & (relation < base)
    category = _categories(ends[:, train], relation[train], base)
    rows = part.cpu().numpy()
    of_head = head_side.cpu().numpy()
    head, tail = np.where(relation[rows] < base, ends[:, rows], ends[::-1, rows])
    degree = np.bincount(ends[:, train].ravel(), minlength=int(graph.num_nodes or 0))
    degree = degree[np.where(of_head, head, tail)]
    frequency = (degree > 0) * 10 ** np.log10(degree.clip(min=1)).astype(int)
    relation = relation[rows] % base
    entity = np.asarray(vocabulary_of(graph).entities or range(int(graph.num_nodes or 0)))
    queries = pd.DataFrame(
        {
            "head": entity[head],
            "relation": np.asarray(names, dtype=object)[relation],
            "tail": entity[tail],
            "side": np.where(of_head, "head", "tail"),
            "category": category[relation],
            "frequency": frequency,
        }
    )
    return pd.concat(
        queries.assign(
            type=kind,
            optimistic=ranks(rank_counts, "optimistic").cpu().numpy(),
            pessimistic=ranks(rank_counts, "pessimistic").cpu().numpy(),
            candidates=rank_counts.candidates.long().cpu().numpy(),
        )
        for kind, rank_counts in counts.items()
    )


def _categories(ends: np.ndarray, relation: np.ndarray, relations: int) -> np.ndarray:
    triples = pd.DataFrame({"head": ends[0], "tail": ends[1], "relation": relation})
    groups = triples.drop_duplicates().groupby("relation")
    sizes = groups[["tail", "head"]].nunique()
    side = np.where(sizes.rdiv(groups.size(), axis=0) >= MANY, "N", "1")
    categories = pd.Series([f"{heads}-{tails}" for heads, tails in side], index=sizes.index)
    return categories.reindex(range(relations), fill_value="1-1").to_numpy(object)


def ranking_table(
    table: pd.DataFrame, by: Sequence[str] = (), hits: Sequence[int] = HITS
) -> pd.DataFrame:
    """Metrics of groups of queries, for each side and both, type of ranking and rule for ties.

    With E[.] of n candidates in random order,

        adjusted_mean_rank_index = 1 - (mean_rank - 1) / (E[mean_rank] - 1),  E = mean (n + 1) / 2
        adjusted_hitsK = (hitsK - E[hitsK]) / (1 - E[hitsK]),                 E = mean min(K/n, 1)

    Source: Berrendorf et al. 2020, arXiv:2002.06914; Hoyt et al. 2022, arXiv:2203.07544.
    """
    sides = [table, table.assign(side="both")] if table["side"].nunique() > 1 else [table]
    frame = pd.concat(sides, ignore_index=True)
    tables = {}
    for ties, share in TIES.items():
        rank = frame["optimistic"] + share * (frame["pessimistic"] - frame["optimistic"])
        values = {"mrr": 1 / rank, "rank": rank, "log": np.log(rank)}
        values |= {f"hits{k}": (rank <= k).astype(float) for k in hits}
        values |= {f"chance{k}": (k / frame["candidates"]).clip(upper=1) for k in hits}
        values["expected"] = (frame["candidates"] + 1) / 2
        groups = pd.DataFrame(values).groupby([frame[c] for c in (*by, "side", "type")])
        mean = groups.mean()
        columns = {
            "queries": groups.size(),
            "mrr": mean["mrr"],
            "mean_rank": mean["rank"],
            "geometric_mean_rank": np.exp(mean["log"]),
            "harmonic_mean_rank": 1 / mean["mrr"],
            "adjusted_mean_rank_index": 1 - (mean["rank"] - 1) / (mean["expected"] - 1),
        }
        for k in hits:
            hit = mean[f"hits{k}"]
            chance = mean[f"chance{k}"]
            columns |= {f"hits{k}": hit, f"adjusted_hits{k}": (hit - chance) / (1 - chance)}
        tables[ties] = pd.DataFrame(columns)
    return pd.concat(tables, names=["ties"]).reset_index()[
        [*by, "side", "type", "ties", *next(iter(tables.values())).columns]
    ]


def save_ranks(folder: Path, table: pd.DataFrame, ties: str, hits: Sequence[int]) -> None:
    """Write the ranks of all queries, metrics of all and by group, and those by relation."""
    with atomic_path(folder / FILE) as partial:
        table.to_csv(partial, index=False, compression={"method": "gzip", "mtime": 0})
    groups = [table.assign(by=by, group=table.get(by, "all")) for by in ("all", *GROUPS[1:])]
    whole = pd.concat(ranking_table(group, ["by", "group"], hits) for group in groups)
    by_relation = ranking_table(table[table["type"] != "raw"], ["relation", "category"], hits)
    by_relation = by_relation[by_relation["ties"] == ties].drop(columns=["type", "ties"])
    by_relation = by_relation.sort_values(["queries", "relation"], ascending=[False, True])
    for name, metrics in ((TABLE, whole), (RELATIONS, by_relation)):
        atomic_write(folder / name, metrics.to_csv(index=False, float_format="%.6g"))

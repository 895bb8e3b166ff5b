"""Ranks of a knowledge graph's test queries as a table, and metrics of groups of queries."""

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
GROUPS = ("category", "frequency")
"""Columns of the table of ranks that group the queries, in addition to side and type."""

MANY = 1.5  # smallest mean number of heads per tail, or tails per head, of a side N


def rank_table(
    graph: Data, part: Tensor, head_side: Tensor, counts: Mapping[str, RankCounts]
) -> pd.DataFrame:
    """Make a table with a row for each query and type of ranking.

    The column `side` is the ranked end and `category` the relation's category, 1-1, 1-N, N-1 or
    N-N (Bordes et al. 2013). `frequency` is the number of training triples of the ranked entity,
    rounded down to a power of ten. A query of an inverse relation is a triple of the relation.

    Args:
        graph: The graph of triples.
        part: Indices of the queries' triples, `[queries]`.
        head_side: Whether the head is ranked, `[queries]`.
        counts: Counts of better candidates by type of ranking.
    """
    names = graph.relation_names
    num_nodes = int(graph.num_nodes or 0)
    num_relations = len(names)
    if graph.get("inverse_relations"):
        num_relations //= 2
    ends = graph.edge_index.cpu().numpy()
    relation = graph.edge_type.cpu().numpy()
    is_training = graph.train_mask.cpu().numpy() & (relation < num_relations)
    training_ends = ends[:, is_training]
    category = _categories(training_ends, relation[is_training], num_relations)
    rows = part.cpu().numpy()
    is_head = head_side.cpu().numpy()
    head, tail = np.where(relation[rows] < num_relations, ends[:, rows], ends[::-1, rows])
    degree = np.bincount(training_ends.ravel(), minlength=num_nodes)
    degree = degree[np.where(is_head, head, tail)]
    power = np.log10(degree.clip(min=1)).astype(int)
    relation = relation[rows] % num_relations
    entity = np.asarray(vocabulary_of(graph).entities or range(num_nodes))
    queries = pd.DataFrame(
        {
            "head": entity[head],
            "relation": np.asarray(names, dtype=object)[relation],
            "tail": entity[tail],
            "side": np.where(is_head, "head", "tail"),
            "category": category[relation],
            "frequency": (degree > 0) * 10**power,
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


def _categories(ends: np.ndarray, relation: np.ndarray, num_relations: int) -> np.ndarray:
    """Category of each relation by its training triples; 1-1 for a relation without triples."""
    triples = pd.DataFrame({"head": ends[0], "tail": ends[1], "relation": relation})
    groups = triples.drop_duplicates().groupby("relation")
    different = groups[["tail", "head"]].nunique()
    mean_count = different.rdiv(groups.size(), axis=0)
    sides = np.where(mean_count >= MANY, "N", "1")
    names = [f"{heads}-{tails}" for heads, tails in sides]
    categories = pd.Series(names, index=different.index)
    return categories.reindex(range(num_relations), fill_value="1-1").to_numpy(object)


def ranking_table(
    table: pd.DataFrame, columns: Sequence[str] = (), hits: Sequence[int] = HITS
) -> pd.DataFrame:
    """Metrics of groups of queries, for each side and both, type of ranking and rule for ties.

    The groups are those of the given columns. With E[.] of n candidates in random order,

        adjusted_mean_rank_index = 1 - (mean_rank - 1) / (E[mean_rank] - 1),  E = mean (n + 1) / 2
        adjusted_hitsK = (hitsK - E[hitsK]) / (1 - E[hitsK]),                 E = mean min(K/n, 1)

    Source: Berrendorf et al. 2020, arXiv:2002.06914; Hoyt et al. 2022, arXiv:2203.07544.
    """
    sides = [table]
    if table["side"].nunique() > 1:
        sides.append(table.assign(side="both"))
    frame = pd.concat(sides, ignore_index=True)
    group_columns = [*columns, "side", "type"]
    tables = {}
    for ties, share in TIES.items():
        rank = frame["optimistic"] + share * (frame["pessimistic"] - frame["optimistic"])
        values = {"mrr": 1 / rank, "rank": rank, "log": np.log(rank)}
        values |= {f"hits{k}": (rank <= k).astype(float) for k in hits}
        values |= {f"chance{k}": (k / frame["candidates"]).clip(upper=1) for k in hits}
        values["expected"] = (frame["candidates"] + 1) / 2
        keys = [frame[column] for column in group_columns]
        groups = pd.DataFrame(values).groupby(keys)
        mean = groups.mean()
        metrics = {
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
            metrics[f"hits{k}"] = hit
            metrics[f"adjusted_hits{k}"] = (hit - chance) / (1 - chance)
        tables[ties] = pd.DataFrame(metrics)
    all_tables = pd.concat(tables, names=["ties"])
    metric_columns = list(all_tables.columns)
    return all_tables.reset_index()[[*group_columns, "ties", *metric_columns]]


def save_ranks(folder: Path, table: pd.DataFrame, ties: str, hits: Sequence[int]) -> None:
    """Write the ranks of all queries, and metrics of all queries, of groups and of relations."""
    with atomic_path(folder / FILE) as partial:
        table.to_csv(partial, index=False, compression={"method": "gzip", "mtime": 0})
    tables = []
    for column in ("all", *GROUPS):
        groups = table.assign(by=column, group=table.get(column, "all"))
        tables.append(ranking_table(groups, ["by", "group"], hits))
    rankings = pd.concat(tables)
    filtered = table[table["type"] != "raw"]
    relations = ranking_table(filtered, ["relation", "category"], hits)
    relations = relations[relations["ties"] == ties].drop(columns=["type", "ties"])
    relations = relations.sort_values(["queries", "relation"], ascending=[False, True])
    for name, metrics in ((TABLE, rankings), (RELATIONS, relations)):
        atomic_write(folder / name, metrics.to_csv(index=False, float_format="%.6g"))

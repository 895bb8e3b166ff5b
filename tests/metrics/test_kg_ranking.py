"""Ranks with ties and known answers, and what they average to: by counting, and as PyKEEN's."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from curvlab.analysis.ranks import rank_table, ranking_table
from curvlab.metrics.ranking import TIES, rank_counts

KS = (1, 3, 10)
THEIRS = {
    "mrr": "inverse_harmonic_mean_rank",
    "mean_rank": "arithmetic_mean_rank",
    "geometric_mean_rank": "geometric_mean_rank",
    "harmonic_mean_rank": "harmonic_mean_rank",
    "adjusted_mean_rank_index": "adjusted_arithmetic_mean_rank_index",
}
"""Columns of our table and PyKEEN's names."""


def pairs(known):
    """Queries and candidates of a list of sets."""
    found = [(q, c) for q, answers in enumerate(known) for c in sorted(answers)]
    query, candidate = zip(*found, strict=True)
    return torch.tensor(query), torch.tensor(candidate)


@pytest.fixture
def tied():
    """Scores with many ties, targets, known answers (the target mostly among them)."""
    rng = np.random.default_rng(3)
    scores = torch.from_numpy(rng.integers(0, 6, (40, 25)) / 4).float()
    target = torch.from_numpy(rng.integers(0, 25, 40))
    known = [set(rng.choice(25, rng.integers(1, 9), replace=False).tolist()) for _ in range(40)]
    for answers, answer in zip(known[:30], target.tolist(), strict=False):
        answers.add(answer)
    return scores, target, known


def candidates(row, answer, left_out):
    return [s for j, s in enumerate(row) if j == answer or j not in left_out]


def test_ranks_are_those_of_counting(tied):
    scores, target, known = tied
    for counts, left_out in zip(
        rank_counts(scores, target, pairs(known)), (known, [set()] * 40), strict=True
    ):
        for i, (row, answer) in enumerate(zip(scores.tolist(), target.tolist(), strict=True)):
            others = candidates(row, answer, left_out[i])
            assert float(counts.higher[i]) == sum(s > row[answer] for s in others)
            assert float(counts.ties[i]) == sum(s == row[answer] for s in others) - 1
            assert float(counts.candidates[i]) == len(others)


@pytest.fixture
def graph():
    """Four relations, one a category, and inverse ones; 40 test triples, both sides of each."""
    rng = np.random.default_rng(5)
    one = np.arange(12)
    ends = [(one, one + 12), (one // 4, one + 6), (one + 6, one // 4), (one % 4, one % 3 + 9)]
    train = np.concatenate([np.stack([h, np.full(12, r), t]) for r, (h, t) in enumerate(ends)], 1)
    test = np.stack([rng.integers(0, 25, 20), rng.integers(0, 4, 20), rng.integers(0, 25, 20)])
    head, relation, tail = torch.from_numpy(np.concatenate([train, test], 1))
    trained = torch.arange(len(head)) < train.shape[1]
    return Data(
        edge_index=torch.stack([torch.cat([head, tail]), torch.cat([tail, head])]),
        edge_type=torch.cat([relation, relation + 4]),
        num_nodes=25,
        relation_names=[f"r{i}" for i in range(8)],
        inverse_relations=True,
        train_mask=trained.repeat(2),
        test_mask=~trained.repeat(2),
    )


@pytest.fixture
def table(tied, graph):
    scores, _, known = tied
    at = graph.test_mask.nonzero().squeeze(1)
    target = graph.edge_index[1, at]
    filtered, raw = rank_counts(scores, target, pairs(known))
    counts = {"filtered": filtered, "raw": raw}
    return rank_table(graph, at, graph.edge_type[at] >= 4, counts)


def test_a_query_is_a_row_of_the_triple_itself(table, graph):
    train = graph.edge_index[:, :48]
    degree = Counter(train.flatten().tolist())
    filtered = table[table["type"] == "filtered"]
    heads, tails = (filtered[filtered["side"] == side] for side in ("head", "tail"))
    columns = ["head", "relation", "tail", "category"]
    assert heads[columns].to_numpy().tolist() == tails[columns].to_numpy().tolist()
    head, tail = graph.edge_index[:, 48:68].tolist()
    assert tails["head"].tolist() == head
    assert tails["tail"].tolist() == tail
    categories = {"r0": "1-1", "r1": "1-N", "r2": "N-1", "r3": "N-N"}
    assert tails["category"].tolist() == tails["relation"].map(categories).tolist()
    for side, entities in ((heads, head), (tails, tail)):
        for entity, lower in zip(entities, side["frequency"], strict=True):
            assert lower <= degree[entity] < max(1, 10 * lower)


@pytest.mark.parametrize("by", [(), ("relation",), ("category",), ("frequency",)])
def test_metrics_of_groups_are_those_of_their_ranks(table, by):
    """Expectations of the adjusted ones over every place that an answer can have."""
    found = ranking_table(table, by, KS).set_index([*by, "side", "type", "ties"])
    for key, row in found.iterrows():
        *group, side, kind, ties = key
        own = table[(table["type"] == kind) & (side == "both" or table["side"].eq(side))]
        for column, value in zip(by, group, strict=True):
            own = own[own[column] == value]
        rank = own["optimistic"] + TIES[ties] * (own["pessimistic"] - own["optimistic"])
        places = [np.arange(1, n + 1) for n in own["candidates"].astype(int)]
        mean, hits = rank.mean(), {k: (rank <= k).mean() for k in KS}
        chance = {k: np.mean([(place <= k).mean() for place in places]) for k in KS}
        expected = np.mean([place.mean() for place in places])
        right = {
            "queries": len(own),
            "mrr": (1 / rank).mean(),
            "mean_rank": mean,
            "geometric_mean_rank": rank.prod() ** (1 / len(rank)),
            "harmonic_mean_rank": len(rank) / (1 / rank).sum(),
            "adjusted_mean_rank_index": (expected - mean) / (expected - 1),
            **{f"hits{k}": hits[k] for k in KS},
            **{f"adjusted_hits{k}": (hits[k] - chance[k]) / (1 - chance[k]) for k in KS},
        }
        assert row.to_dict() == pytest.approx(right, rel=1e-9)


def test_ranks_and_metrics_are_pykeens(tied, table, graph):
    """An optional extra: they are compared where PyKEEN is installed."""
    exact = pytest.importorskip("pykeen.evaluation").ranks.Ranks
    metrics = pytest.importorskip("pykeen.metrics.ranking")
    named = {ours: metrics.rank_based_metric_resolver.make(name) for ours, name in THEIRS.items()}
    named |= {f"hits{k}": metrics.HitsAtK(k) for k in KS}
    named |= {f"adjusted_hits{k}": metrics.AdjustedHitsAtK(k=k) for k in KS}
    scores, _, known = tied
    target = graph.edge_index[1, graph.test_mask]
    masked = scores.clone()
    left_out = [a - {t} for a, t in zip(known, target.tolist(), strict=True)]
    masked[pairs(left_out)] = torch.nan
    found = ranking_table(table, hits=KS).set_index(["side", "type", "ties"])
    rows = {"tail": slice(0, 20), "head": slice(20, 40), "both": slice(0, 40)}
    for kind, theirs in (("filtered", masked), ("raw", scores)):
        for side, at in rows.items():
            true = theirs[at].gather(1, target[at].unsqueeze(1))
            place = exact.from_scores(true, theirs[at])
            own = table[(table["type"] == kind) & ((side == "both") | (table["side"] == side))]
            assert own["candidates"].tolist() == place.number_of_options.tolist()
            for rule in ("optimistic", "pessimistic"):
                assert own[rule].tolist() == getattr(place, rule).tolist()
            for rule, (name, metric) in product(TIES, named.items()):
                rank = getattr(place, rule).double().numpy()
                right = metric(rank, num_candidates=place.number_of_options.numpy())
                assert found.loc[(side, kind, rule), name] == pytest.approx(right)


def test_one_side_has_no_metrics_of_both():
    rows = {"side": "tail", "type": "raw", "optimistic": 1.0, "pessimistic": 2.0, "candidates": 5}
    found = ranking_table(pd.DataFrame([rows]))
    assert found["side"].unique().tolist() == ["tail"]

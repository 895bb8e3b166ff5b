"""Ranks with ties and known answers: by hand, by brute force, and as PyKEEN has them."""

import numpy as np
import pytest
import torch

from curvlab.errors import UsageError
from curvlab.metrics.ranking import TIES, RankingMetrics, Standing, ranks, standings


def pairs(known):
    """Queries and candidates of a list of sets."""
    found = [(q, c) for q, answers in enumerate(known) for c in sorted(answers)]
    query, candidate = zip(*found, strict=True)
    return torch.tensor(query), torch.tensor(candidate)


def metrics(standing, ties="realistic"):
    metric = RankingMetrics(ties)
    metric.update(standing)
    return {name: float(value) for name, value in metric.compute().items()}


def test_the_worked_example():
    """Two queries: one above and two tied beside the first target; the second is ahead of all."""
    first = torch.tensor([[0.9, 0.5, 0.5, 0.5, 0.2, 0.7]])
    filtered, raw = standings(first, torch.tensor([2]), pairs([{0, 2}]))
    assert [float(ranks(filtered, rule)) for rule in TIES] == [3, 2, 4]
    assert [float(ranks(raw, rule)) for rule in TIES] == [4, 3, 5]
    second = torch.tensor([[0.1, 0.8, 0.3, 0.3, 0.3, 0.9]])
    other, _ = standings(second, torch.tensor([1]), pairs([{1, 5}]))
    assert float(ranks(other, "realistic")) == 1
    metric = RankingMetrics("realistic")
    metric.update(filtered)
    metric.update(other)
    found = metric.compute()
    assert float(found["mrr"]) == pytest.approx(2 / 3)
    assert float(found["mean_rank"]) == 2
    assert [float(found[f"hits{k}"]) for k in (1, 3, 10)] == [0.5, 1, 1]


def test_a_constant_scorer_scores_like_chance():
    standing, _ = standings(torch.full((1, 5), 0.3), torch.tensor([4]))
    assert [float(ranks(standing, rule)) for rule in TIES] == [3, 1, 5]
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(0, 1000, (4000,), generator=generator)
    constant = metrics(standings(torch.zeros(4000, 1000), target)[0])
    random = metrics(standings(torch.rand(4000, 1000, generator=generator), target)[0])
    assert constant["mean_rank"] == 500.5
    assert random["mean_rank"] == pytest.approx(500.5, rel=0.02)
    assert constant["hits10"] == 0


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


def test_ranks_are_those_of_counting(tied):
    scores, target, known = tied
    filtered, raw = standings(scores, target, pairs(known))
    for i, (row, answer) in enumerate(zip(scores.tolist(), target.tolist(), strict=True)):
        for standing, left_out in ((filtered, known[i] - {answer}), (raw, set())):
            others = [s for j, s in enumerate(row) if j not in left_out | {answer}]
            assert float(standing.above[i]) == sum(s > row[answer] for s in others)
            assert float(standing.tied[i]) == sum(s == row[answer] for s in others)


def test_ranks_are_pykeens(tied):
    """An optional extra: it is compared where PyKEEN is installed."""
    evaluation = pytest.importorskip("pykeen.evaluation")
    scores, target, known = tied
    rows, columns = pairs(
        [answers - {t} for answers, t in zip(known, target.tolist(), strict=True)]
    )
    masked = scores.clone()
    masked[rows, columns] = torch.nan
    filtered, raw = standings(scores, target, pairs(known))
    for standing, theirs in ((filtered, masked), (raw, scores)):
        exact = evaluation.ranks.Ranks.from_scores(theirs.gather(1, target.unsqueeze(1)), theirs)
        for rule in TIES:
            assert ranks(standing, rule).tolist() == getattr(exact, rule).tolist()
        evaluator = evaluation.RankBasedEvaluator(filtered=False)
        evaluator.process_scores_(
            hrt_batch=torch.stack([target * 0, target * 0, target], 1),
            target="tail",
            scores=theirs,
            true_scores=theirs.gather(1, target.unsqueeze(1)),
        )
        result = evaluator.finalize()
        for rule in TIES:
            own = metrics(standing, rule)
            for name, key in (
                ("mrr", "inverse_harmonic_mean_rank"),
                ("mean_rank", "arithmetic_mean_rank"),
                ("hits1", "hits_at_1"),
                ("hits3", "hits_at_3"),
                ("hits10", "hits_at_10"),
            ):
                right = result.get_metric(f"tail.{rule}.{key}")
                assert own[name] == pytest.approx(right, rel=1e-6)  # means of theirs are float32


def test_states_are_summed_over_processes(tied):
    scores, target, known = tied
    filtered, _ = standings(scores, target, pairs(known))
    whole = metrics(filtered)
    halves = [RankingMetrics("realistic") for _ in range(2)]
    for metric, part in zip(halves, (slice(0, 13), slice(13, None)), strict=True):
        metric.update(Standing(filtered.above[part], filtered.tied[part]))
    states = iter([[getattr(metric, name) for metric in halves] for name in halves[0]._defaults])
    shared = RankingMetrics(
        "realistic",
        dist_sync_fn=lambda *_, **__: next(states),
        distributed_available_fn=lambda: True,
    )
    shared.update(Standing(filtered.above[:13], filtered.tied[:13]))
    assert {k: float(v) for k, v in shared.compute().items()} == pytest.approx(whole)


def test_another_rule_is_refused():
    with pytest.raises(UsageError, match="must be one of realistic, optimistic, pessimistic"):
        ranks(Standing(torch.zeros(1), torch.zeros(1)), "hopeful")

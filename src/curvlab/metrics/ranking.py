"""Ranks of answers among candidates, filtered and raw, with ties; and means over ranks."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Ties = Literal["realistic", "optimistic", "pessimistic"]
TIES: dict[Ties, float] = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}
"""Share of tied candidates that rank above the answer."""

HITS = (1, 3, 10)


class RankCounts(NamedTuple):
    """Numbers of candidates of each query, `[queries]`.

    Attributes:
        higher: candidates with a higher score than the answer.
        ties: other candidates with the answer's score.
        candidates: all candidates.
    """

    higher: Tensor
    ties: Tensor
    candidates: Tensor


def rank_counts(
    scores: Tensor, target: Tensor, known: tuple[Tensor, Tensor] | None = None
) -> tuple[RankCounts, RankCounts]:
    """Count the candidates that score higher than each query's answer, filtered and raw.

    One pass over the scores gives the raw counts. The filtered counts subtract the known answers,
    except the target.

    Args:
        scores: `[queries, candidates]`, finite; fewer than 2^24 candidates.
        target: column of the answer `[queries]`.
        known: query and candidate `[known]` of each answer that the filtered ranking leaves out.
    """
    target_score = scores.gather(1, target.unsqueeze(1))
    sign = (scores - target_score).sign_()
    difference = sign.sum(1)
    unequal = sign.abs_().sum(1)
    candidates = torch.full_like(difference, scores.shape[1])
    raw = _counts(difference, unequal, candidates)
    if known is None:
        return raw, raw
    query, candidate = known
    is_other = candidate != target[query]
    query = query[is_other]
    candidate = candidate[is_other]
    sign = (scores[query, candidate] - target_score[query, 0]).sign_()
    difference = difference.index_add(0, query, sign, alpha=-1)
    unequal = unequal.index_add(0, query, sign.abs(), alpha=-1)
    candidates = candidates.index_add(0, query, torch.ones_like(sign), alpha=-1)
    return _counts(difference, unequal, candidates), raw


def _counts(difference: Tensor, unequal: Tensor, candidates: Tensor) -> RankCounts:
    """Counts `[queries]`; the candidates include the target, which equals itself.

    Args:
        difference: candidates with a higher score minus those with a lower score.
        unequal: candidates with a higher score plus those with a lower score.
        candidates: all candidates.
    """
    higher = (unequal + difference) / 2
    ties = candidates - unequal - 1
    return RankCounts(higher, ties, candidates)


def ranks(counts: RankCounts, ties: Ties) -> Tensor:
    """Ranks `[queries]` from 1.

    The optimistic rank is 1 + higher, the pessimistic rank 1 + higher + ties. The realistic rank is
    their mean, which is the expected rank if ties are broken at random.

    Source: Berrendorf et al. 2020 (PyKEEN).
    """
    return 1 + counts.higher.double() + TIES[ties] * counts.ties.double()


def score_ranks(values: Tensor, scores: Tensor, ties: Ties = "realistic") -> Tensor:
    """Ranks from 1 of values `[rows, values]` among the scores `[rows, scores]` that have them."""
    ascending = scores.sort(dim=1).values
    lower = torch.searchsorted(ascending, values)
    lower_or_equal = torch.searchsorted(ascending, values, right=True)
    higher = scores.shape[1] - lower_or_equal
    equal = (lower_or_equal - lower - 1).double()
    return 1 + higher + TIES[ties] * equal


def ranking_metrics(rank: Tensor, hits: Iterable[int] = HITS) -> dict[str, Tensor]:
    """Means over ranks `[queries]`: `mrr`, `mean_rank` and `hitsK`, a fraction, for every K."""
    sums = {"mrr": rank.reciprocal().sum(), "mean_rank": rank.sum()}
    for k in hits:
        sums[f"hits{k}"] = (rank <= k).sum()
    return {name: total / len(rank) for name, total in sums.items()}

"""Ranks of true answers among candidates, with ties and known answers, and their means."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Ties = Literal["realistic", "optimistic", "pessimistic"]
TIES: dict[Ties, float] = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}
"""Share of the tied candidates that rank above the true answer."""

HITS = (1, 3, 10)


class RankCounts(NamedTuple):
    """Candidates that score above the true answer, others that equal it, and all; `[queries]`."""

    above: Tensor
    tied: Tensor
    candidates: Tensor


def rank_counts(
    scores: Tensor, target: Tensor, known: tuple[Tensor, Tensor] | None = None
) -> tuple[RankCounts, RankCounts]:
    """Filtered and raw counts: all candidates compared with the true answer of each query.

    One pass ranks with and without the known answers, which are counted separately and subtracted;
    the target never is.

    Args:
        scores: `[queries, candidates]`, finite; fewer than 2^24 candidates.
        target: the true answer's candidate `[queries]`.
        known: query and candidate `[known]` of each answer that the filtered ranking leaves out.
    """
    true = scores.gather(1, target.unsqueeze(1))
    sign = (scores - true).sign_()
    difference = sign.sum(1)  # above minus below
    unequal = sign.abs_().sum(1)  # above plus below
    candidates = torch.full_like(difference, scores.shape[1])
    raw = _counts(difference, unequal, candidates)
    if known is None:
        return raw, raw
    query, candidate = known
    query, candidate = (part[candidate != target[query]] for part in (query, candidate))
    sign = (scores[query, candidate] - true[query, 0]).sign_()
    difference = difference.index_add(0, query, sign, alpha=-1)
    unequal = unequal.index_add(0, query, sign.abs(), alpha=-1)
    candidates = candidates.index_add(0, query, torch.ones_like(sign), alpha=-1)
    return _counts(difference, unequal, candidates), raw


def _counts(difference: Tensor, unequal: Tensor, candidates: Tensor) -> RankCounts:
    """Counts from above minus below, above plus below, and all; the target ties with itself."""
    return RankCounts((unequal + difference) / 2, candidates - unequal - 1, candidates)


def ranks(counts: RankCounts, ties: Ties) -> Tensor:
    """Ranks `[queries]` from 1.

    optimistic 1 + above, pessimistic 1 + above + tied, realistic their mean, the expected rank
    when ties are broken at random up to half a place. Source: Berrendorf et al. 2020 (PyKEEN).
    """
    return 1 + counts.above.double() + TIES[ties] * counts.tied.double()


def ranks_among(values: Tensor, scores: Tensor, ties: Ties = "realistic") -> Tensor:
    """Ranks from 1 of values `[rows, values]` among the scores `[rows, scores]` that have them."""
    ascending = scores.sort(dim=1).values
    below, up_to = (torch.searchsorted(ascending, values, right=right) for right in (False, True))
    return 1 + (scores.shape[1] - up_to) + TIES[ties] * (up_to - below - 1).double()


def ranking_metrics(rank: Tensor, hits: Iterable[int] = HITS) -> dict[str, Tensor]:
    """Means over ranks `[queries]`: `mrr`, `mean_rank` and `hitsK`, a fraction, for every K."""
    means = {"mrr": rank.reciprocal().sum(), "mean_rank": rank.sum()}
    means |= {f"hits{k}": (rank <= k).sum() for k in hits}
    return {name: total / len(rank) for name, total in means.items()}

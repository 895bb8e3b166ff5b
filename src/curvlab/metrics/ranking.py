"""Ranks of true answers among candidates, with ties and known answers, and what they average to."""

from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torchmetrics import Metric

from curvlab.errors import UsageError

Ties = Literal["realistic", "optimistic", "pessimistic"]
TIES = get_args(Ties)
HITS = (1, 3, 10)


class Standing(NamedTuple):
    """Where the true answer stands: candidates above it and others at its height, `[queries]`."""

    above: Tensor
    tied: Tensor


def standings(
    scores: Tensor, target: Tensor, known: tuple[Tensor, Tensor] | None = None
) -> tuple[Standing, Standing]:
    """Compare all candidates with the true answer of each query.

    The true score is taken from the matrix itself, so that equal candidates are equal. The known
    answers are counted apart and taken off, so that one look at the matrix ranks with and without
    them; the target is never taken off.

    Args:
        scores: `[queries, candidates]`, finite; fewer than 2^24 candidates.
        target: The true answer's candidate `[queries]`.
        known: Query `[known]` and candidate `[known]` of the answers that are left out of the
            filtered ranking, each pair once; None for none.

    Returns:
        The filtered and the raw standing.
    """
    true = scores.gather(1, target.unsqueeze(1))
    sign = (scores - true).sign_()
    difference = sign.sum(1)  # above minus below
    apart = sign.abs_().sum(1)  # above plus below
    candidates = torch.full_like(difference, scores.shape[1])
    raw = _standing(difference, apart, candidates)
    if known is None:
        return raw, raw
    query, candidate = known
    query, candidate = (part[candidate != target[query]] for part in (query, candidate))
    sign = (scores[query, candidate] - true[query, 0]).sign_()
    difference = difference.index_add(0, query, sign, alpha=-1)
    apart = apart.index_add(0, query, sign.abs(), alpha=-1)
    candidates = candidates.index_add(0, query, torch.ones_like(sign), alpha=-1)
    return _standing(difference, apart, candidates), raw


def _standing(difference: Tensor, apart: Tensor, candidates: Tensor) -> Standing:
    """Numbers from above minus below, above plus below, and all; the target ties with itself."""
    return Standing((apart + difference) / 2, candidates - apart - 1)


def ranks(standing: Standing, ties: str) -> Tensor:
    """Ranks `[queries]` from 1.

    optimistic 1 + above, pessimistic 1 + above + tied, realistic their mean, the expected rank
    when ties are broken at random up to half a place. Source: Berrendorf et al. 2020 (PyKEEN).

    Raises:
        UsageError: There is no such rule.
    """
    if ties not in TIES:
        raise UsageError(f"ties={ties!r} must be one of {', '.join(TIES)}")
    share = {"optimistic": 0.0, "pessimistic": 1.0, "realistic": 0.5}[ties]
    return 1 + standing.above.double() + share * standing.tied.double()


class RankingMetrics(Metric):
    """Mean reciprocal rank, mean rank and Hits@1, 3, 10, as fractions but for the mean rank.

    All states are sums, of one process or of several.

    Args:
        ties: `realistic`, `optimistic` or `pessimistic`, see `ranks`.
        **options: Of torchmetrics.
    """

    full_state_update = False
    higher_is_better = None
    count: Tensor
    reciprocal: Tensor
    rank: Tensor
    hits: Tensor

    def __init__(self, ties: str, **options: Any) -> None:
        super().__init__(**options)
        self.ties = ties
        for name, size in (("count", ()), ("reciprocal", ()), ("rank", ()), ("hits", len(HITS))):
            zeros = torch.zeros(size, dtype=torch.float64)
            self.add_state(name, zeros, dist_reduce_fx="sum")

    def update(self, standing: Standing) -> None:
        """Add the queries of a block."""
        rank = ranks(standing, self.ties)
        self.count += len(rank)
        self.reciprocal += rank.reciprocal().sum()
        self.rank += rank.sum()
        self.hits += (rank.unsqueeze(1) <= rank.new_tensor(HITS)).sum(0)

    def compute(self) -> dict[str, Tensor]:
        """Means over all queries: `mrr`, `mean_rank`, `hits1`, `hits3`, `hits10`."""
        hits = {f"hits{k}": self.hits[i] / self.count for i, k in enumerate(HITS)}
        return {
            "mrr": self.reciprocal / self.count,
            "mean_rank": self.rank / self.count,
            **hits,
        }

"""Paired comparisons over seeds: difference, interval, tests, and what more seeds would find."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import numpy as np
from scipy import stats
from scipy.optimize import brentq

LEVEL = 0.05
POWER = 0.8
FEWEST_RANKED = 6
"""Pairs from which on a rank test can be significant: `2 / 2^6 < 0.05`."""

MOST_RUNS = 100_000


@dataclass(frozen=True)
class Paired:
    """Differences of pairs.

    Attributes:
        pairs: their number.
        mean: mean difference.
        pm: half of its 95 % interval, `t s / sqrt(n)`; NaN with one pair, and where
            all differ alike by more than 0.
        std: sample standard deviation; NaN with one pair.
        p_t: of the paired t test, two-sided; NaN with one pair.
        p_wilcoxon: of the signed-rank test, two-sided; None with fewer than six pairs.
    """

    pairs: int
    mean: float
    pm: float
    std: float
    p_t: float
    p_wilcoxon: float | None

    @property
    def interval(self) -> str:
        """In words."""
        if isnan(self.pm):
            return "not known"
        return f"{self.mean - self.pm:+.2f} to {self.mean + self.pm:+.2f}"


def paired(values: Sequence[float], others: Sequence[float]) -> Paired:
    """Compare values with others, pair by pair; the difference is value minus other.

    Pairs that all differ alike have no spread to test by. Then p is the sign test's, `2^(1 - n)`,
    and there is no interval. Where none differ p is 1.
    """
    difference = np.subtract(values, others)
    n, mean = len(difference), float(difference.mean())
    if n < 2:
        return Paired(n, mean, nan, nan, nan, None)
    std = float(difference.std(ddof=1))
    ranked = n >= FEWEST_RANKED
    if std == 0:
        p, pm = (1.0, 0.0) if mean == 0 else (2.0 ** (1 - n), nan)
        return Paired(n, mean, pm, 0.0, p, p if ranked else None)
    error = std / sqrt(n)
    p_t = float(2 * stats.t.sf(abs(mean) / error, n - 1))
    p_rank = float(stats.wilcoxon(difference).pvalue) if ranked else None
    return Paired(n, mean, float(stats.t.ppf(1 - LEVEL / 2, n - 1)) * error, std, p_t, p_rank)


def power(difference: float, std: float, pairs: int, level: float = LEVEL) -> float:
    """Probability that a paired t test of `pairs` pairs finds a true difference.

    Args:
        difference: in units of the values.
        std: standard deviation of the pairs' differences.
        pairs: their number, at least 2.
        level: of the test, two-sided.
    """
    if std == 0:
        return 1.0 if difference else level
    shift = abs(difference) / std * sqrt(pairs)
    limit = stats.t.ppf(1 - level / 2, pairs - 1)
    near = stats.nct.sf(limit, pairs - 1, shift)
    far = stats.nct.cdf(-limit, pairs - 1, shift)
    # scipy has no digits left where the one is 1 and the other 0
    return float(np.nan_to_num(near, nan=1.0) + np.nan_to_num(far, nan=0.0))


def detectable(std: float, pairs: int, level: float = LEVEL) -> float:
    """The difference that `pairs` pairs would find with a probability of 80 %."""
    if std == 0:
        return 0.0
    if pairs < 2:
        return inf
    high = std / sqrt(pairs)
    while power(high, std, pairs, level) < POWER:
        high *= 2
    return float(brentq(lambda d: power(d, std, pairs, level) - POWER, high / 2, high))


def runs_needed(difference: float, std: float, level: float = LEVEL) -> int | None:
    """Pairs that find a true difference with a probability of 80 %; None: more than 100,000."""
    if difference == 0:
        return None
    low, high = 2, 4
    while power(difference, std, high, level) < POWER:
        low, high = high, 2 * high
        if high > MOST_RUNS:
            return None
    while low < high:
        middle = (low + high) // 2
        if power(difference, std, middle, level) < POWER:
            low = middle + 1
        else:
            high = middle
    return low

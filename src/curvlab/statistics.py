"""Statistics of runs: intervals over seeds, paired comparisons, ranks, and power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, hypot, inf, isnan, log2, nan, sqrt
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

LEVEL = 0.05  # significance level of tests
POWER = 0.8  # power of tests for a number of runs
NORMAL = 1.96  # standard errors in half a 95 % interval of a normal distribution

IntervalKind = Literal["ci95", "student", "std"]
"""Kinds of our ±: `ci95` is 1.96 std / sqrt(n), or Student's interval for fewer than five runs."""

FEWEST_SPREAD = 3  # fewest runs for a spread
FEWEST_NORMAL = 5  # fewest runs for the normal interval of `ci95`
FEWEST_RANKED = 6  # fewest pairs for a test of ranks

PUBLISHED_SPREADS = {
    "ci95": "1.96 std/√n",
    "bootstrap95": "the distance to the farther end of the mean's 95% bootstrap interval",
    "std": "the standard deviation",  # with an unknown divisor
    "std_population": "the population standard deviation",
    "std_in_code": "not defined; its code prints the sample standard deviation",
}
"""Known kinds of a paper's ±, by `pm_kind`."""

PUBLISHED_INTERVALS = ("ci95", "bootstrap95")
"""Kinds that are half a 95 % interval of the mean."""

DEVIATIONS = ("std", "std_population", "std_in_code")
"""Kinds that are a standard deviation over runs."""

FRACTION = 1.5  # largest score that is a fraction of one; larger scores are percentages

CONFIRMED = "confirmed"
CONTRADICTED = "contradicted"
LEVEL_WORD = "level"
UNDECIDED = "undecided"
NOT_RUN = "not run"
VERDICTS = (CONFIRMED, CONTRADICTED, LEVEL_WORD, UNDECIDED, NOT_RUN)
"""The five verdicts on a statement, in tables, claims and comparisons."""

MOST_PAIRS = 100_000  # largest number of pairs with a power

# Largest differences that are too small to matter.
POINT = 1.0  # of percentages
MRR_MARGIN = 0.005
HITS_MARGIN = 0.01


@dataclass(frozen=True)
class Summary:
    """Mean and spread of the runs of a cell.

    The mean is NaN without runs. Spreads are NaN for fewer than three runs.
    """

    seeds: int  # n
    mean: float
    std: float  # sample standard deviation, with the divisor n - 1
    kind: IntervalKind = "ci95"  # kind of `pm`

    @property
    def student_pm(self) -> float:
        """Half width of the mean's 95 % interval, `t s / sqrt(n)`, t Student's quantile."""
        return float(student(self.seeds - 1) * self.std / np.sqrt(self.seeds))

    @property
    def next_pm(self) -> float:
        """Half width of the 95 % interval of one more value, `t s sqrt(1 + 1/n)`."""
        return self.student_pm * sqrt(self.seeds + 1)

    @property
    def pm(self) -> float:
        """The number after ±, by `kind`; comparisons use `student_pm` instead."""
        if self.kind == "std":
            return self.std
        if self.kind == "ci95" and self.seeds >= FEWEST_NORMAL:
            return NORMAL * self.std / sqrt(self.seeds)
        return self.student_pm


def summarise(values: Sequence[float], kind: IntervalKind = "ci95") -> Summary:
    """Mean and spread of the values of one cell."""
    n = len(values)
    mean = float(np.mean(values)) if n else nan
    std = float(np.std(values, ddof=1)) if n >= FEWEST_SPREAD else nan
    return Summary(n, mean, std, kind)


def published_std(pm: float, kind: str, runs: float) -> float:
    """The sample standard deviation behind a published ±; NaN if unknown."""
    if not runs >= 2:
        return nan
    if kind in PUBLISHED_INTERVALS:
        return pm * sqrt(runs) / NORMAL
    if kind == "std_population":
        return pm * sqrt(runs / (runs - 1))
    if kind in DEVIATIONS:
        return pm
    return nan


def welch_pm(ours: Summary, std: float, runs: float, rounding: float = 0.0) -> float:
    """Half width of the 95 % interval of our mean minus the published mean.

    The half width is `t sqrt(s1^2 / n1 + s2^2 / n2)`, with t Student's quantile for Welch's
    degrees of freedom. The rounding error is uniform within half a digit. 1.96 of its standard
    deviations are added in quadrature. The result is NaN if a standard deviation is unknown.

    Source: Welch 1947, "The generalization of 'Student's' problem when several different
    population variances are involved".
    """
    if isnan(ours.std) or isnan(std):
        return nan
    variance = ours.std**2 / ours.seeds
    published_variance = std**2 / runs
    total = variance + published_variance
    half = 0.0
    if total:
        terms = variance**2 / (ours.seeds - 1) + published_variance**2 / (runs - 1)
        half = student(total**2 / terms) * sqrt(total)
    return hypot(half, NORMAL * rounding / sqrt(3))


def half_digit(published: str) -> float:
    """Half a unit of the last published digit: 0.05 for `81.9`."""
    return 0.5 * 10.0 ** -len(published.partition(".")[2])


def decimals(scores: Any) -> int:
    """Decimals of scores: two for percentages, four for fractions."""
    largest = np.nanmax(np.abs(np.asarray(scores, float)), initial=0)
    return 2 if largest > FRACTION else 4


class Draw(NamedTuple):
    """The seed of a run, and a number that runs on the same split share."""

    seed: int
    split: int


def split_means(scores: Mapping[Draw, float]) -> list[float]:
    """One score for each split, the mean of the runs on it, in the order of the seeds.

    Runs on one split that differ in the initialisation are no independent measurements of what
    another split would give. They count as one.
    """
    by_split: dict[int, list[float]] = {}
    for draw in sorted(scores):
        by_split.setdefault(draw.split, []).append(scores[draw])
    return [fmean(values) for values in by_split.values()]


def count_of_runs(runs: int, splits: int) -> str:
    """A number of runs as text, such as `10`, or `50 on 10 splits` if some share a split."""
    return f"{runs}" if runs == splits else f"{runs} on {splits} splits"


@dataclass(frozen=True)
class PairedDifferences:
    """Differences of pairs; for a single pair all but the mean are NaN.

    For equal differences `pm` is NaN and `p_t` is the sign test's `2^(1 - n)`, or 1 if they are 0.
    A pair may hold the means of several runs; `runs` is the number of runs of each method, and
    `within` the standard deviation of the differences of single runs on one split, NaN without two.
    """

    pairs: int
    mean: float
    pm: float  # half width of the mean's 95 % interval, t s / sqrt(n)
    std: float  # sample standard deviation
    p_t: float  # p value of the paired t test, two-sided
    differences: tuple[float, ...] = ()
    runs: int = 0
    within: float = nan

    @cached_property
    def p_wilcoxon(self) -> float | None:
        """P value of the signed-rank test, two-sided; None with fewer than six pairs."""
        if self.pairs < FEWEST_RANKED:
            return None
        if self.std == 0:
            return self.p_t
        return float(scipy.stats.wilcoxon(self.differences).pvalue)

    @property
    def interval(self) -> str:
        """The 95 % interval as text."""
        if isnan(self.pm):
            return "not known"
        return f"{self.mean - self.pm:+.2f} to {self.mean + self.pm:+.2f}"


def compare_pairs(values: Sequence[float], baseline: Sequence[float]) -> PairedDifferences:
    """Compare values with a baseline, pair by pair; differences are value minus baseline."""
    difference = differences(values, baseline)
    n = len(difference)
    mean = float(difference.mean()) if n else nan
    pairs = tuple(difference.tolist())
    if n < 2:
        return PairedDifferences(n, mean, nan, nan, nan, pairs, n)
    if np.ptp(difference) == 0:
        p = 1.0 if mean == 0 else 2.0 ** (1 - n)
        return PairedDifferences(n, mean, nan, 0.0, p, pairs, n)
    std = float(difference.std(ddof=1))
    error = std / sqrt(n)
    half_width = float(student(n - 1) * error)
    p = 2 * float(scipy.special.stdtr(n - 1, -abs(mean) / error))
    return PairedDifferences(n, mean, half_width, std, p, pairs, n)


def paired_by_seed(
    scores: Mapping[Draw, float], baseline: Mapping[Draw, float]
) -> PairedDifferences:
    """Compare scores over their common seeds; seeds on one split form one pair, by their means."""
    common = sorted(scores.keys() & baseline.keys())
    values = split_means({draw: scores[draw] for draw in common})
    paired = compare_pairs(values, split_means({draw: baseline[draw] for draw in common}))
    runs = len(common)
    if runs == paired.pairs:
        return paired
    single = np.array([scores[draw] - baseline[draw] for draw in common])
    _, split = np.unique([draw.split for draw in common], return_inverse=True)
    means = np.bincount(split, single) / np.bincount(split)
    within = sqrt(np.sum((single - means[split]) ** 2) / (runs - paired.pairs))
    return replace(paired, runs=runs, within=within)


def differences(values: Sequence[float], baseline: Sequence[float]) -> np.ndarray:
    """Differences of pairs; differences that are equal up to rounding become equal.

    Scores are computed in float32. Differences whose sizes are within 1e-4 points of each other
    (1e-6 for fractions of one) are replaced by their mean. Differences within 1e-4 of 0 become 0.
    """
    difference = np.subtract(values, baseline, dtype=float)
    if len(difference) == 0:
        return difference
    tolerance = 10.0 ** (-2 - decimals([*values, *baseline]))
    size = np.abs(difference)
    order = np.argsort(size)
    group = np.empty(len(size), dtype=int)
    is_new_group = np.diff(size[order], prepend=0.0) > tolerance
    group[order] = np.cumsum(is_new_group)
    means = np.bincount(group, size) / np.maximum(np.bincount(group), 1)
    means[0] = 0.0  # the group that begins at 0
    return np.sign(difference) * means[group]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of p values, in their order; NaN stays NaN and does not count.

    The smallest of m values is multiplied by m, the next by m - 1, and so on. A corrected value is
    at least that of each smaller p value, and at most 1.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[: np.isfinite(p).sum()]  # NaN comes last
    corrected = np.full(len(p), nan)
    scaled = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    corrected[order] = np.minimum(scaled, 1)
    return corrected.tolist()


def power(difference: float, std: float, pairs: float, level: float = LEVEL) -> float:
    """Probability that a paired two-sided t test of at least two pairs finds a true difference.

    `std` is the standard deviation of the pairs' differences.
    """
    if std == 0:
        return 1.0 if difference else level
    shift = abs(difference) / std * sqrt(pairs)
    limit = scipy.stats.t.ppf(1 - level / 2, pairs - 1)
    upper = scipy.stats.nct.sf(limit, pairs - 1, shift)
    lower = scipy.stats.nct.cdf(-limit, pairs - 1, shift)
    # scipy returns NaN where the upper tail is 1 and the lower tail 0.
    return float(np.nan_to_num(upper, nan=1.0) + np.nan_to_num(lower, nan=0.0))


def detectable_difference(std: float, pairs: int, level: float = LEVEL) -> float:
    """The difference that `pairs` pairs detect with 80 % power."""
    if std == 0:
        return 0.0
    if pairs < 2:
        return inf

    def excess(difference: float) -> float:
        return power(difference, std, pairs, level) - POWER

    high = std / sqrt(pairs)
    while excess(high) < 0:
        high *= 2
    return float(scipy.optimize.brentq(excess, 0, high))


def required_runs(difference: float, std: float, level: float = LEVEL) -> int | None:
    """Pairs that detect a difference with 80 % power; None if more than 100,000."""

    def excess(pairs: float) -> float:
        return power(difference, std, pairs, level) - POWER

    if excess(MOST_PAIRS) < 0:
        return None
    if excess(2) >= 0:
        return 2
    return ceil(scipy.optimize.brentq(excess, 2, MOST_PAIRS))


def metric_margin(metric: str) -> float:
    """The largest difference of a metric that is too small to matter; 0 for unknown metrics.

    The margin is one point of accuracy, F1, AUC, average precision and mAP, 0.005 of MRR and 0.01
    of Hits@k.
    """
    name = metric.rpartition(".")[2]
    if name.endswith("mrr"):
        return MRR_MARGIN
    if "hits" in name:
        return HITS_MARGIN
    percentages = {"accuracy", "f1", "auc", "map", "ap", "score"}
    return POINT if percentages.intersection(name.split("_")) else 0.0


@dataclass(frozen=True)
class Verdict:
    """A verdict's word, and the number of further seeds that would decide the statement.

    `splits` is the number of splits that the data set comes with if all of them are used, so that
    a further seed has one of them again.
    """

    word: str
    missing_seeds: int | None = 0  # None if more than 100,000, or if no number would
    splits: int | None = None

    @property
    def decided(self) -> bool:
        """Whether the runs decide the statement."""
        return self.word in (CONFIRMED, CONTRADICTED, LEVEL_WORD)

    def __str__(self) -> str:
        if self.word != UNDECIDED:
            return self.word
        where = f" on the same {self.splits} splits" if self.splits else ""
        if self.missing_seeds is None and self.splits:
            return f"{self.word} (also with more seeds{where})"
        if self.missing_seeds is None:
            return f"{self.word} (more than 100,000 more seeds)"
        plural = "" if self.missing_seeds == 1 else "s"
        return f"{self.word} ({self.missing_seeds:,} more seed{plural}{where})"


def judge_pairs(
    paired: PairedDifferences, p: float, margin: float, tests: int = 1, splits: int | None = None
) -> Verdict:
    """Judge the statement that a difference is positive.

    *Confirmed* and *contradicted*: p, corrected for all tests, is below 5 %. *Level*: the 95 %
    interval of the difference lies within the margin. *Undecided*: none of these, or fewer than
    three pairs. *Not run*: no pair. `splits` is the number of splits of the data set, if they are
    few.
    """
    if paired.pairs == 0:
        return Verdict(NOT_RUN, FEWEST_SPREAD)
    if paired.pairs < FEWEST_SPREAD:
        return Verdict(UNDECIDED, FEWEST_SPREAD - paired.pairs)
    if p < LEVEL:
        return Verdict(CONFIRMED if paired.mean > 0 else CONTRADICTED)
    all_equal = paired.std == 0 and abs(paired.mean) <= margin  # without an interval
    if all_equal or abs(paired.mean) + paired.pm <= margin:
        return Verdict(LEVEL_WORD)
    if splits is not None and paired.pairs >= splits:
        rounds = deciding_rounds(paired, margin, LEVEL / tests)
        missing = None if rounds is None else rounds * paired.pairs - paired.runs
        return Verdict(UNDECIDED, missing, splits)
    required = deciding_pairs(paired.mean, paired.std, margin, LEVEL / tests)
    if required is None:
        return Verdict(UNDECIDED, None)
    return Verdict(UNDECIDED, max(1, required - paired.pairs))


def deciding_rounds(paired: PairedDifferences, margin: float, level: float = LEVEL) -> int | None:
    """Number of runs on each split, more than so far, that decide a statement; None if none does.

    The number of pairs stays. Their variance is that of the splits plus `within^2` divided by the
    runs on a split. With one run on each, all of it counts as that of the runs, and the number is a
    lower bound.
    """
    n = paired.pairs
    runs = paired.runs / n
    significant = abs(paired.mean) / detectable_difference(1.0, n, level)
    within_margin = (margin - abs(paired.mean)) * sqrt(n) / float(student(n - 1))
    largest_std = max(significant, within_margin)  # that decides the statement
    of_runs = paired.std if isnan(paired.within) else paired.within
    of_splits = max(0.0, paired.std**2 - of_runs**2 / runs)  # variances
    allowed = largest_std**2 - of_splits
    if allowed <= 0 or of_runs**2 / allowed > MOST_PAIRS / n:
        return None
    return max(floor(runs) + 1, ceil(of_runs**2 / allowed))


def deciding_pairs(mean: float, std: float, margin: float, level: float = LEVEL) -> int | None:
    """Number of pairs that decide a statement; None if more than 100,000.

    Either the difference is significant (80 % power) or its interval lies within the margin. The
    mean and the standard deviation count as the true ones.
    """
    if std == 0:  # the sign test of equal differences, 2^(1 - n)
        return 1 + floor(log2(1 / level)) + 1
    significant = required_runs(mean, std, level)
    half_width = margin - abs(mean)
    if half_width <= 0:
        return significant
    within_margin = interval_pairs(std, half_width)
    counts = [count for count in (significant, within_margin) if count is not None]
    return min(counts, default=None)


def interval_pairs(std: float, half_width: float) -> int | None:
    """Smallest number of pairs with `t s / sqrt(n) <= half_width`; None if more than 100,000."""

    def suffices(pairs: np.ndarray) -> np.ndarray:
        return student(pairs - 1) * std / np.sqrt(pairs) <= half_width

    coarse = np.unique(np.geomspace(2, MOST_PAIRS, 2000).astype(int))
    is_enough = suffices(coarse)
    if not is_enough.any():
        return None
    first = int(is_enough.argmax())
    start = int(coarse[max(0, first - 1)])
    exact = np.arange(start, int(coarse[first]) + 1)
    return int(exact[suffices(exact).argmax()])


def judge_number(difference: float, half_width: float, margin: float) -> str:
    """Judge a published number by the 95 % interval of our mean minus this number.

    *Confirmed*: the interval lies within the margin. *Contradicted*: the interval excludes 0. The
    verdict is empty if the interval is unknown.
    """
    if isnan(difference) or isnan(half_width):
        return ""
    size = abs(difference)
    if size + half_width <= margin:
        return CONFIRMED
    if size > half_width:
        return CONTRADICTED
    return UNDECIDED


def friedman(scores: np.ndarray) -> float:
    """P value of Friedman's test on `[models, datasets]`; NaN if there are too few."""
    if scores.shape[0] < 3 or scores.shape[1] < 2:
        return nan
    return float(scipy.stats.friedmanchisquare(*scores).pvalue)


def critical_difference(models: int, datasets: int, level: float = LEVEL) -> float:
    """Critical difference of mean ranks, `q sqrt(k (k + 1) / (6 N))`; NaN for one dataset.

    q is the quantile of the studentised range of k means with infinite degrees of freedom, divided
    by sqrt(2).

    Source: Demsar 2006, "Statistical comparisons of classifiers over multiple data sets", JMLR 7,
    Section 3.2.2 (Nemenyi's test).
    """
    if datasets < 2:
        return nan
    q = float(scipy.stats.studentized_range.ppf(1 - level, models, inf)) / sqrt(2)
    return q * sqrt(models * (models + 1) / (6 * datasets))


def student(freedom: Any) -> Any:
    """Student's quantile of a two-sided 95 % interval."""
    return scipy.special.stdtrit(freedom, 1 - LEVEL / 2)

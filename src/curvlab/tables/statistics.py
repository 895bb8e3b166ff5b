"""Mean and interval over seeds, and the comparison with a paper's printed number."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isnan, nan, sqrt
from typing import Literal

import numpy as np
from scipy import stats

IntervalKind = Literal["ci95", "student", "std"]
"""What stands behind our plus-minus sign.

`ci95` is 1.96 std / sqrt(n), from five runs on; `student` is Student's 95% interval; `std` is the
standard deviation itself. With fewer than five runs `ci95` is Student's interval as well.
"""

FEWEST_NORMAL = 5
"""Runs from which on 1.96 std / sqrt(n) is printed, where the paper prints it."""

FEWEST = 3
"""Runs from which on there is a spread; of fewer, the values themselves are printed."""

PRINTED_SPREADS = {
    "ci95": "1.96 std/√n",
    "bootstrap95": "the distance to the farther end of the mean's 95% bootstrap interval",
    "std": "the standard deviation",  # of which divisor is not known
    "std_population": "the population standard deviation",
    "std_in_code": "not defined; its code prints the sample standard deviation",
}
"""What stands behind a paper's plus-minus sign, by `pm_kind`; any other kind is not known."""

PRINTED_INTERVALS = ("ci95", "bootstrap95")
"""Those of them that are half a 95 % interval of the mean."""

PRINTED_DEVIATIONS = ("std", "std_population", "std_in_code")
"""Those of them that are a standard deviation over runs."""

RESAMPLES = 2_000
"""Of the bootstrap."""


@dataclass(frozen=True)
class Summary:
    """A metric over the finished runs of one cell, in the metric's unit.

    What cannot be known is NaN: everything without a run, every spread with fewer than three.

    Attributes:
        seeds: Number of values, n.
        mean: Their mean.
        std: Sample standard deviation (divided by n - 1).
        pm: Half width that is printed after the plus-minus sign, of the kind asked for.
        student_pm: Half width of the mean's 95 % interval, `t s / sqrt(n)`, t Student's quantile
            with n - 1 degrees of freedom.
        next_pm: Half width of the 95 % interval of one more value, `t s sqrt(1 + 1/n)`.
    """

    seeds: int
    mean: float
    std: float
    pm: float
    student_pm: float
    next_pm: float


def summarise(values: Sequence[float], kind: IntervalKind = "ci95") -> Summary:
    """Mean and spread of one cell's values.

    The papers print `1.96 std / sqrt(n)` also for three to ten seeds, where the 95 % interval is
    wider; `student_pm` is that wider one. Comparisons use it for any number of runs.

    Args:
        values: One value a finished run.
        kind: Which spread is printed.
    """
    n = len(values)
    mean = float(np.mean(values)) if n else nan
    if n < FEWEST:
        return Summary(n, mean, nan, nan, nan, nan)
    std = float(np.std(values, ddof=1))
    error = std / sqrt(n)
    student = float(stats.t.ppf(0.975, n - 1)) * error
    normal = 1.96 * error if n >= FEWEST_NORMAL else student
    pm = {"ci95": normal, "student": student, "std": std}[kind]
    return Summary(n, mean, std, pm, student, student * sqrt(n + 1))


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the 95 % percentile interval of the mean of resampled values, the same at every call.

    NaN with fewer than three values. With three to ten it is narrower than Student's, and covers
    less than it says.
    """
    if len(values) < FEWEST:
        return nan, nan
    resampled = stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=0
    )
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


def within_intervals(
    difference: float, our_pm: float, paper_pm: float, rounding: float = 0.0
) -> bool | None:
    """Whether two means differ by no more than their 95 % intervals, combined, explain.

    `|difference| <= sqrt(our_pm^2 + paper_pm^2)`; a paper without an interval counts as exact, but
    for the digits that it does not print: `|difference| <= our_pm + rounding`.

    Args:
        difference: Our mean minus the paper's.
        our_pm: Half width of our interval; NaN with fewer than three runs.
        paper_pm: Half width of the paper's interval; NaN where it prints none, or not this kind.
        rounding: Half a unit of the last digit that the paper prints (see `half_a_digit`).

    Returns:
        None where there is nothing to judge by: no difference, or no interval of our own.
    """
    if isnan(difference) or isnan(our_pm):
        return None
    if isnan(paper_pm):
        return abs(difference) <= our_pm + rounding
    return abs(difference) <= hypot(our_pm, paper_pm)


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number, in their order; NaN counts as 1.

    The smallest times m, the next times m - 1, ..., none below an earlier one, at most 1.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    p = np.nan_to_num(np.asarray(p_values, dtype=float), nan=1.0)
    order = np.argsort(p, kind="stable")
    scaled = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(scaled, 1)
    return corrected.tolist()


def half_a_digit(printed: str) -> float:
    """By how much a number may differ from its print: half a unit of the last printed digit.

    A little more, since sums of numbers that end in 5 are not exact: 0.05000001 for `81.9`.
    """
    return 0.5000001 * 10.0 ** -len(printed.partition(".")[2])

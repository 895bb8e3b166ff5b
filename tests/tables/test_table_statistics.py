from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvlab.tables.statistics import (
    bootstrap_interval,
    half_a_digit,
    holm,
    summarise,
    within_intervals,
)

VALUES = [98.0, 99.0, 100.0]


def test_hand_computation():
    """Student's quantile for two degrees of freedom is 4.303, for four 2.776."""
    summary = summarise(VALUES)
    assert (summary.seeds, summary.mean, summary.std) == (3, 99.0, 1.0)
    assert summary.pm == summary.student_pm == pytest.approx(4.303 / sqrt(3), abs=1e-3)
    five = summarise([*VALUES, 98.0, 100.0])
    assert (five.mean, five.std) == (99.0, 1.0)
    assert five.pm == pytest.approx(1.96 / sqrt(5))
    assert five.student_pm == pytest.approx(2.776 / sqrt(5), abs=1e-3)


@pytest.mark.parametrize("kind", ["ci95", "student", "std"])
def test_two_values_have_no_spread(kind):
    summary = summarise([98.0, 99.0], kind)
    assert (summary.seeds, summary.mean) == (2, 98.5)
    assert all(map(isnan, (summary.std, summary.pm, summary.student_pm, summary.next_pm)))
    assert all(map(isnan, bootstrap_interval([98.0, 99.0])))


def test_kind_std_prints_the_standard_deviation():
    assert summarise(VALUES, "std").pm == 1.0


@settings(deadline=None)  # the first call imports scipy's distributions
@given(st.lists(st.floats(0, 100), min_size=3, max_size=12))
def test_student_interval_is_scipys(values):
    summary = summarise(values)
    error = stats.sem(values)
    half = stats.t(len(values) - 1).ppf(0.975) * error
    assert summary.student_pm == pytest.approx(half, abs=1e-12)
    assert summarise(values, "student").pm == summary.student_pm
    normal = 1.96 * error if len(values) >= 5 else summary.student_pm
    assert summary.pm == pytest.approx(normal, abs=1e-12)
    assert summary.mean == pytest.approx(np.mean(values))


@pytest.mark.parametrize("runs", [3, 4])
def test_what_is_printed_of_few_runs_covers_95_percent(runs):
    draws = np.random.default_rng(0).normal(size=(2000, runs))
    summaries = [summarise(list(values)) for values in draws]
    covered = np.mean([abs(s.mean) <= s.pm for s in summaries])
    assert covered == pytest.approx(0.95, abs=0.02)
    normal = [1.96 * s.std / sqrt(runs) for s in summaries]
    assert np.mean([abs(s.mean) <= pm for s, pm in zip(summaries, normal, strict=True)]) < 0.9


def test_one_more_value_lies_within_its_interval():
    draws = np.random.default_rng(0).normal(size=(2000, 10))
    summaries = [summarise(list(values)) for values in draws[:, :9]]
    inside = [abs(s.mean - x) <= s.next_pm for s, x in zip(summaries, draws[:, 9], strict=True)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)


def test_the_bootstrap_is_the_normal_interval_of_many_values():
    values = np.random.default_rng(0).normal(size=400).tolist()
    low, high = bootstrap_interval(values)
    half = 1.96 * np.std(values) / sqrt(len(values))
    assert (low, high) == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.01)
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval([1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert all(map(isnan, bootstrap_interval([1.0])))


def test_one_seed_has_a_mean_and_no_spread():
    summary = summarise([90.5])
    assert summary.mean == 90.5
    assert all(map(isnan, (summary.std, summary.pm, summary.student_pm)))


def test_no_seed_has_nothing():
    summary = summarise([])
    assert summary.seeds == 0
    assert isnan(summary.mean)


@pytest.mark.parametrize(
    ("difference", "our_pm", "paper_pm", "expected"),
    [
        (5.0, 3.0, 4.0, True),  # sqrt(9 + 16) = 5
        (-5.01, 3.0, 4.0, False),
        (3.0, 3.0, nan, True),
        (-3.01, 3.0, nan, False),
        (0.0, nan, 4.0, None),
        (nan, 3.0, 4.0, None),
    ],
)
def test_within_intervals(difference, our_pm, paper_pm, expected):
    assert within_intervals(difference, our_pm, paper_pm) is expected


@pytest.mark.parametrize(
    ("ours", "printed", "expected"),
    [
        (100 / 3, "33.3", True),
        (33.25, "33.3", True),
        (33.24, "33.3", False),
        (33.24, "33", True),
        (33.301, "33.30", True),
        (33.31, "33.30", False),
    ],
)
def test_equal_seeds_are_compared_with_the_digits_that_are_printed(ours, printed, expected):
    difference = ours - float(printed)
    assert within_intervals(difference, 0.0, nan, half_a_digit(printed)) is expected
    assert within_intervals(1e-15, 0.0, nan, half_a_digit(printed)) is True


def test_an_interval_of_the_paper_says_more_than_its_digits():
    assert within_intervals(0.04, 0.0, 0.03, half_a_digit("33.3")) is False


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, float("nan")]) == [1.0, 1.0]
    assert holm([]) == []

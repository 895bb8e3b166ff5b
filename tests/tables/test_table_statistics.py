from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvlab.tables.statistics import (
    bootstrap_interval,
    half_a_digit,
    summarise,
    within_intervals,
)

VALUES = [98.0, 99.0, 100.0]


def test_hand_computation():
    summary = summarise(VALUES)
    assert (summary.seeds, summary.mean, summary.std) == (3, 99.0, 1.0)
    assert summary.pm == pytest.approx(1.96 / sqrt(3))


def test_kind_std_prints_the_standard_deviation():
    assert summarise(VALUES, "std").pm == 1.0


@settings(deadline=None)  # the first call imports scipy's distributions
@given(st.lists(st.floats(0, 100), min_size=2, max_size=12))
def test_student_interval_is_scipys(values):
    summary = summarise(values)
    error = stats.sem(values)
    half = stats.t(len(values) - 1).ppf(0.975) * error
    assert summary.student_pm == pytest.approx(half, abs=1e-12)
    assert summary.pm == pytest.approx(1.96 * error, abs=1e-12)
    assert summary.mean == pytest.approx(np.mean(values))


def test_student_interval_covers_95_percent_and_the_normal_one_does_not():
    draws = np.random.default_rng(0).normal(size=(2000, 3))
    summaries = [summarise(list(values)) for values in draws]
    assert np.mean([abs(s.mean) <= s.student_pm for s in summaries]) == pytest.approx(
        0.95, abs=0.02
    )
    assert np.mean([abs(s.mean) <= s.pm for s in summaries]) < 0.85


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

"""Intervals, tests, power and ranks against scipy, closed forms and simulation."""

from itertools import product
from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from curvlab.statistics import (
    Draw,
    PairedDifferences,
    compare_pairs,
    critical_difference,
    deciding_pairs,
    deciding_rounds,
    detectable_difference,
    differences,
    friedman,
    half_digit,
    holm,
    interval_pairs,
    judge_number,
    judge_pairs,
    metric_margin,
    paired_by_seed,
    power,
    published_std,
    required_runs,
    split_means,
    summarise,
    welch_pm,
)

VALUES = [98.0, 99.0, 100.0]


def by_seed(scores):
    """Scores of runs with a split for each seed."""
    return {Draw(seed, seed): score for seed, score in scores.items()}


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


def test_one_more_value_lies_within_its_interval():
    draws = np.random.default_rng(0).normal(size=(2000, 10))
    summaries = [summarise(list(values)) for values in draws[:, :9]]
    inside = [abs(s.mean - x) <= s.next_pm for s, x in zip(summaries, draws[:, 9], strict=True)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)


def test_fewer_than_three_values_have_no_spread():
    for kind, few in product(("ci95", "student", "std"), ([], [90.5], [98.0, 99.0])):
        assert summarise(few, kind).seeds == len(few)
        assert isnan(summarise(few, kind).mean) == (not few)
        assert all(map(isnan, (summarise(few).std, summarise(few).pm, summarise(few).next_pm)))
    assert summarise(VALUES, "std").pm == 1.0


@pytest.mark.parametrize("theirs", [10, 5])
@pytest.mark.parametrize("kind", ["std", "std_population", "ci95"])
def test_five_percent_of_equal_distributions_are_outside_the_difference_interval(theirs, kind):
    """As papers print it: means of around 80 and spreads of around 1, with one decimal of both."""
    generator = np.random.default_rng(0)
    outside = []
    for _ in range(2000):
        ours, paper = generator.normal(80, 1, 10).tolist(), generator.normal(80, 1, theirs)
        std = paper.std(ddof=0 if kind == "std_population" else 1)
        mean, pm = f"{paper.mean():.1f}", 1.96 * std / sqrt(theirs) if kind == "ci95" else std
        std = published_std(float(f"{pm:.1f}"), kind, theirs)
        half = welch_pm(summarise(ours), std, theirs, half_digit(mean))
        outside.append(abs(np.mean(ours) - float(mean)) > half)
    assert np.mean(outside) == pytest.approx(0.05, abs=0.017)


def test_the_difference_interval_is_that_of_welchs_test():
    ours, paper = np.random.default_rng(0).normal(80, (1, 3), (7, 2)).T
    paper = paper[:4]
    half = welch_pm(summarise(ours.tolist()), np.std(paper, ddof=1), 4)
    interval = stats.ttest_ind(ours, paper, equal_var=False).confidence_interval()
    assert half == pytest.approx((interval.high - interval.low) / 2)


@pytest.mark.parametrize(
    ("pm", "kind", "runs"), [(1, "unknown", 10), (1, "std", nan), (nan, "std", 5), (1, "", 3)]
)
def test_no_interval_where_the_printed_spread_is_unknown(pm, kind, runs):
    assert isnan(published_std(pm, kind, runs))
    assert isnan(welch_pm(summarise(VALUES), published_std(pm, kind, runs), runs))


def test_equal_runs_on_both_sides_differ_by_no_more_than_the_print_hides():
    half = welch_pm(summarise([80.0] * 3), 0.0, 5, half_digit("80.1"))
    assert half == pytest.approx(0.057, abs=1e-3)  # 1.96 / sqrt(3) of 0.05
    assert welch_pm(summarise([80.0] * 3), 0.0, 5) == 0.0


def test_a_paired_comparison_is_scipys():
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    found, theirs = compare_pairs(a, b), stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(0.95)
    assert found.p_t == pytest.approx(theirs.pvalue)
    assert (found.mean - found.pm, found.mean + found.pm) == pytest.approx(tuple(interval))
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(a - b).pvalue)
    assert compare_pairs(b, a).mean == -found.mean


def test_seeds_that_one_side_lacks_are_left_out():
    ours = by_seed({0: 80.0, 1: 82.0, 2: 85.0, 7: 1.0})
    found = paired_by_seed(ours, by_seed({0: 79.0, 1: 79.5, 2: 83.8, 9: 2.0}))
    assert found == compare_pairs([80.0, 82.0, 85.0], [79.0, 79.5, 83.8])
    assert found.pairs == 3
    assert isnan(paired_by_seed(by_seed({0: 1.0}), by_seed({1: 1.0})).mean)


def test_seeds_on_one_split_are_one_pair_by_their_means():
    """Fifty runs on ten splits, some of which one method lacks, against scipy on split means."""
    rng = np.random.default_rng(0)
    draws = [Draw(seed, seed % 10) for seed in range(50)]
    ours = dict(zip(draws, rng.normal(80, 3, 50), strict=True))
    others = dict(zip(draws, rng.normal(79, 3, 50), strict=True))
    del ours[Draw(13, 3)], others[Draw(25, 5)], others[Draw(35, 5)]
    common = [draw for draw in draws if draw in ours and draw in others]
    means = [
        [np.mean([scores[d] for d in common if d.split == split]) for split in range(10)]
        for scores in (ours, others)
    ]
    theirs = stats.ttest_rel(*means)
    found = paired_by_seed(ours, others)
    assert (found.pairs, found.runs) == (10, 47)
    assert found.p_t == pytest.approx(theirs.pvalue)
    assert found.mean - found.pm == pytest.approx(theirs.confidence_interval(0.95).low)


def test_the_interval_over_splits_holds_the_mean_as_often_as_it_says():
    """That of all runs as if they were independent holds it far less often."""
    rng = np.random.default_rng(0)
    draws = [Draw(seed, seed % 10) for seed in range(50)]
    by_split = 0
    by_run = 0
    for _ in range(1000):
        scores = np.tile(rng.normal(0, 2, 10), 5) + rng.normal(0, 1, 50)
        means = summarise(split_means(dict(zip(draws, scores, strict=True))))
        by_split += abs(means.mean) <= means.student_pm
        runs = summarise(scores.tolist())
        by_run += abs(runs.mean) <= runs.student_pm
    assert by_split / 1000 == pytest.approx(0.95, abs=0.02)
    assert by_run / 1000 < 0.75


def test_the_spread_on_one_split_is_scipys_of_an_analysis_of_variance():
    rng = np.random.default_rng(0)
    draws = [Draw(seed, seed % 10) for seed in range(30)]
    ours = rng.normal(80, 3, 30)
    others = rng.normal(79, 3, 30)
    found = paired_by_seed(*(dict(zip(draws, values, strict=True)) for values in (ours, others)))
    by_split = (ours - others).reshape(3, 10).T
    # F is the variance of the means times the runs on each, divided by the variance within.
    f = stats.f_oneway(*by_split).statistic
    assert found.within**2 == pytest.approx(3 * by_split.mean(1).var(ddof=1) / f)
    assert isnan(paired_by_seed(by_seed({0: 1.0, 1: 2.0}), by_seed({0: 0.0, 1: 0.0})).within)


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("of_splits", "of_runs"), [(0.0, 4.0), (0.5, 2.0), (1.0, 0.1), (3.0, 9.0)])
@pytest.mark.parametrize("runs", [1, 3])
def test_further_runs_on_each_split_are_the_fewest_that_decide(mean, of_splits, of_runs, runs):
    """Searched one by one, by the interval and the power for the standard deviation of each."""
    margin = 1.0
    pairs = 10

    def std(count):
        within = np.hypot(of_splits, of_runs) if runs == 1 else of_runs
        between = 0.0 if runs == 1 else of_splits
        return np.hypot(between, within / sqrt(count))

    def decides(count):
        pm = stats.t(pairs - 1).ppf(0.975) * std(count) / sqrt(pairs)
        return abs(mean) + pm <= margin or power(mean, std(count), pairs) >= 0.8

    within = nan if runs == 1 else of_runs
    paired = PairedDifferences(
        pairs, mean, nan, float(std(runs)), nan, runs=runs * pairs, within=within
    )
    expected = next((count for count in range(runs + 1, 10_001) if decides(count)), None)
    assert deciding_rounds(paired, margin) == expected


def test_few_pairs_have_no_rank_test_and_one_no_test():
    assert compare_pairs([1.0, 2.0, 4.0], [1.0, 1.0, 1.0]).p_wilcoxon is None
    assert isnan(compare_pairs([1.0], [0.0]).p_t)


@pytest.mark.parametrize("pairs", [3, 6])
@pytest.mark.parametrize("correct", [(700, 685), (812, 811), (640, 640)])
def test_float32_scores_that_differ_by_the_same_count_have_the_sign_tests_p(pairs, correct):
    """Percentages of 1,000 nodes, computed as torch does, differ in their last bits."""
    add = np.arange(pairs)
    ours, others = (
        100 * ((c + 17 * add).astype(np.float32) / np.float32(1000)) for c in np.array(correct)
    )
    found = compare_pairs(ours.tolist(), others.tolist())
    equal = correct[0] == correct[1]
    assert found.p_t == (1.0 if equal else stats.binomtest(pairs, pairs).pvalue)
    assert found.std == 0
    assert isnan(found.pm)
    assert found.interval == "not known"
    assert found.p_wilcoxon == (found.p_t if pairs == 6 else None)


def test_differences_within_a_ten_thousandth_of_a_point_are_equal():
    assert len(set(differences([-1.5, -1.5000076, -1.5], [0.0, 0.0, 0.0]))) == 1
    assert len(set(differences([80.0002, 80.0, 90.0], [79.0, 79.0, 89.0]))) == 2
    assert differences([50.00005, 49.99995], [50.0, 50.0]).tolist() == [0, 0]
    assert np.ptp(differences([0.2703, 0.2704], [0.2, 0.2])) == pytest.approx(1e-4)


def test_five_percent_of_null_studies_of_accuracies_are_significant_at_most():
    """Of accuracies over 300 nodes, whose differences are often equal."""
    generator = np.random.default_rng(0)
    counts = generator.binomial(300, 0.8, (2, 3000, 3)).astype(np.float32)
    ours, others = 100 * (counts / np.float32(300))
    p = [compare_pairs(a, b).p_t for a, b in zip(ours, others, strict=True)]
    assert np.mean(np.array(p) < 0.05) < 0.05 + 2 * sqrt(0.05 * 0.95 / 3000)
    assert np.mean(np.array(p) < 0.001) < 0.005


def test_holm():
    """Of statsmodels' multipletests(method="holm")."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, nan, 0.04])[::2] == [0.5, 0.08]
    assert isnan(holm([0.5, nan])[1])
    assert holm([]) == []


def test_power_is_the_share_of_simulated_studies():
    drawn = np.random.default_rng(0).normal(0.8, 1.0, (20_000, 8))
    share = (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    assert power(0.8, 1.0, 8) == pytest.approx(share, abs=0.012)
    assert power(0.0, 1.0, 8) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("level", [0.05, 0.0125])
@pytest.mark.parametrize("pairs", [2, 6, 30])
def test_the_detectable_difference_needs_just_these_runs(pairs, level):
    difference = detectable_difference(2.0, pairs, level)
    assert power(difference, 2.0, pairs, level) == pytest.approx(0.8, abs=1e-6)
    assert required_runs(1.0001 * difference, 2.0, level) == pairs


def test_no_number_of_runs_finds_no_difference():
    assert required_runs(0.0, 1.0) is None
    assert required_runs(1e-4, 1.0) is None
    assert detectable_difference(0.0, 6) == 0


@pytest.mark.parametrize(("models", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_demsars_quantiles(models, q):
    """Demsar 2006, Table 5a."""
    expected = q * sqrt(models * (models + 1) / (6 * 14))
    assert critical_difference(models, 14) == pytest.approx(expected, rel=1e-3)
    assert isnan(critical_difference(models, 1))


def test_one_dataset_says_nothing_of_models():
    scores = np.random.default_rng(0).normal(size=(4, 6))
    assert friedman(scores) == pytest.approx(stats.friedmanchisquare(*scores).pvalue)
    assert isnan(friedman(scores[:, :1]))
    assert isnan(friedman(scores[:2]))


# Verdicts


def found_of(differences):
    return compare_pairs(differences, [0.0] * len(differences))


@pytest.mark.parametrize(
    ("differences", "margin", "word"),
    [
        ([], 1.0, "not run"),
        ([5.0], 1.0, "undecided"),
        ([5.0, 5.1], 1.0, "undecided"),  # two have no spread
        ([5.0, 5.1, 4.9], 1.0, "confirmed"),
        ([-5.0, -5.1, -4.9], 1.0, "contradicted"),
        ([0.1, -0.1, 0.02], 1.0, "level"),
        ([0.1, -0.1, 0.02], 0.1, "undecided"),
        ([0.0, 0.0, 0.0], 1.0, "level"),
        ([0.1, 0.1, 0.1], 0.2, "level"),
        ([3.0, -3.0, 0.5], 1.0, "undecided"),
        ([3.0, -3.0, 0.5], 20.0, "level"),
    ],
)
def test_the_five_words(differences, margin, word):
    """As scipy's paired test and interval say."""
    pairs = found_of(differences)
    verdict = judge_pairs(pairs, pairs.p_t, margin)
    assert verdict.word == word
    if len(differences) > 2 and len(set(differences)) > 1:
        test = stats.ttest_1samp(differences, 0)
        low, high = test.confidence_interval()
        assert (word in ("confirmed", "contradicted")) == (test.pvalue < 0.05)
        if word not in ("confirmed", "contradicted"):
            assert (word == "level") == (-margin <= low and high <= margin)
    assert verdict.decided == (word in ("confirmed", "contradicted", "level"))


@pytest.mark.parametrize(("std", "room"), [(1.0, 0.5), (3.0, 0.1), (0.2, 5.0), (100.0, 0.9)])
def test_the_pairs_of_a_narrow_interval_are_the_fewest(std, room):
    def half(n):
        return stats.t.ppf(0.975, n - 1) * std / n**0.5

    n = interval_pairs(std, room)
    assert half(n) <= room
    assert n == 2 or half(n - 1) > room
    assert interval_pairs(1e6, 0.1) is None


def test_more_seeds_are_those_that_either_test_or_interval_takes():
    """A difference of 0.5 with standard deviation 1: 34 pairs by power, 0.5 of room by interval."""
    assert deciding_pairs(0.5, 1.0, 0.0) == required_runs(0.5, 1.0)
    assert deciding_pairs(0.5, 1.0, 1.0) == min(required_runs(0.5, 1.0), interval_pairs(1.0, 0.5))
    assert deciding_pairs(0.0, 1.0, 1.0) == interval_pairs(1.0, 1.0)
    assert deciding_pairs(0.0, 1.0, 0.0) is None
    for tests in (1, 4, 9):  # equal differences have p = 2^(1 - n)
        n = deciding_pairs(2.0, 0.0, 1.0, 0.05 / tests)
        assert 2.0 ** (1 - n) < 0.05 / tests <= 2.0 ** (2 - n)


def test_an_open_verdict_says_how_many_more_seeds():
    one = judge_pairs(found_of([5.0]), float("nan"), 1.0)
    assert str(one) == "undecided (2 more seeds)"
    pairs = found_of([3.0, -3.0, 0.5, 1.0])
    more = deciding_pairs(pairs.mean, pairs.std, 1.0) - 4
    assert str(judge_pairs(pairs, pairs.p_t, 1.0)) == f"undecided ({more} more seeds)"
    assert str(judge_pairs(found_of([]), float("nan"), 1.0)) == "not run"


@pytest.mark.parametrize(
    ("metric", "margin"),
    [
        *((name, 1.0) for name in ("score", "test.accuracy", "test.f1_micro", "test.roc_auc")),
        *((name, 1.0) for name in ("test.map", "test.ap", "train.accuracy", "test.map_tail")),
        *((name, 0.005) for name in ("test.mrr", "test.raw_mrr", "test.tail_mrr")),
        *((name, 0.01) for name in ("test.hits10", "test.raw_hits10")),
        *((name, 0.0) for name in ("test.inference_ms", "test.sse", "test.r2", "test.parameters")),
        ("largest_curvature", 0.0),
    ],
)
def test_margins_of_metrics(metric, margin):
    assert metric_margin(metric) == margin


@pytest.mark.parametrize(
    ("difference", "pm", "word"),
    [
        (0.3, 0.5, "confirmed"),
        (-0.3, 0.1, "confirmed"),
        (0.3, 2.0, "undecided"),
        (1.3, 0.5, "contradicted"),
        (0.9, 0.5, "contradicted"),
        (0.3, float("nan"), ""),
        (float("nan"), 1.0, ""),
    ],
)
def test_a_number_is_judged_by_its_interval(difference, pm, word):
    assert judge_number(difference, pm, 1.0) == word

"""Paired tests agree with scipy, Holm's example and simulation."""

import numpy as np
import pytest
from scipy import stats

from curvlab.study.statistics import detectable, paired, power, runs_needed


def test_a_paired_comparison_is_scipys():
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 12))
    found, theirs = paired(a, b), stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(0.95)
    assert found.p_t == pytest.approx(theirs.pvalue)
    assert (found.mean - found.pm, found.mean + found.pm) == pytest.approx(tuple(interval))
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(a - b).pvalue)
    assert paired(b, a).mean == -found.mean


def test_few_pairs_and_equal_ones():
    assert paired([1.0, 2.0, 4.0], [1.0, 1.0, 1.0]).p_wilcoxon is None
    assert np.isnan(paired([1.0], [0.0]).p_t)
    same = paired([3.0] * 6, [3.0] * 6)
    assert (same.p_t, same.p_wilcoxon, same.pm) == (1.0, 1.0, 0.0)
    alike = paired([3.0] * 6, [2.0] * 6)
    assert alike.p_t == alike.p_wilcoxon == stats.binomtest(6, 6).pvalue
    assert np.isnan(alike.pm)
    assert alike.interval == "not known"


def test_power_is_the_share_of_simulated_studies():
    generator = np.random.default_rng(0)
    drawn = generator.normal(0.8, 1.0, (20_000, 8))
    share = (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    assert power(0.8, 1.0, 8) == pytest.approx(share, abs=0.012)
    assert power(0.0, 1.0, 8) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_detectable_difference_needs_just_these_runs(level):
    for pairs in (2, 6, 30):
        difference = detectable(2.0, pairs, level)
        assert power(difference, 2.0, pairs, level) == pytest.approx(0.8, abs=1e-6)
        assert runs_needed(1.0001 * difference, 2.0, level) == pairs
    assert runs_needed(0.0, 1.0) is None
    assert runs_needed(1e-4, 1.0) is None
    assert detectable(0.0, 6) == 0

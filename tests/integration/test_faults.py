"""Some faults of every kind; `scripts/faults.py` tries them for hours."""

import fault_trials as faults
import pytest

FEW = {"kill": 1, "flip": 1, "disk": 1}
MANY = {"kill": 100, "flip": 300, "disk": 40, "memory": 3, "verb": 10}
"""The same faults on every machine that is fast enough, so that no test fails by chance."""


def check(kind, seed, seconds, most):
    try:
        tried = list(faults.attempts(kind, seed, seconds, most))
    except PermissionError as error:
        pytest.skip(str(error))
    assert tried
    assert not [outcome for outcome in tried if not outcome.held]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_lost_and_no_score_is_wrong(kind):
    check(kind, 0, 60, FEW[kind])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MANY)
def test_a_campaign_loses_nothing_and_gives_no_wrong_score(kind):
    check(kind, 1, 3600, MANY[kind])

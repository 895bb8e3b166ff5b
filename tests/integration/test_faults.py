"""Some faults of every kind; `scripts/faults.py` tries them for hours."""

import fault_trials as faults
import pytest

SECONDS = 60
FEW = {"kill": 1, "flip": 1, "disk": 1}
MORE = {"kill": 10, "flip": 16, "disk": 10}
"""The same faults on every machine that is fast enough, so that no test fails by chance."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", faults.FAULTS)
@pytest.mark.parametrize(
    ("seed", "most"), [(0, FEW), pytest.param(1, MORE, marks=pytest.mark.nightly)]
)
def test_nothing_is_lost_and_no_score_is_wrong(kind, seed, most):
    try:
        tried = list(faults.attempts(kind, seed, SECONDS, most[kind]))
    except PermissionError as error:
        pytest.skip(str(error))
    assert tried
    assert not [outcome for outcome in tried if not outcome.held]

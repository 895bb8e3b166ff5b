"""What a run prints while it trains."""

import pytest

from curvlab.callbacks.progress import describe


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"map": 93.125, "points/at_rim": 0.25}, "mAP 93.12"),
        ({f"kappa/{i}/0": 0.5 for i in range(6)}, "kappa 0.50 0.50 0.50 0.50 ..."),
        (
            {"val/roc_auc": 81.25, "val/accuracy": 70.0, "kappa/0/0": 1.0},
            "val roc_auc 81.25  kappa 1.00",
        ),
    ],
)
def test_a_row_in_one_line(row, expected):
    assert describe({"step": 5, "loss": 1.2345678, **row}) == f"loss 1.235  {expected}"

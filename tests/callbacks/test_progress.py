"""What a run prints while it trains."""

import sys

import pytest

from curvlab.callbacks import Curves, RunProgress
from curvlab.callbacks.progress import describe


def printed(fit, small, tmp_path, capsys, steps, shown=True):
    """Lines on the terminal's error stream, which in a test is none."""
    assert not sys.stderr.isatty()
    curves = Curves(tmp_path / "metrics.csv")
    fit(small(), [curves, RunProgress(curves, "Model on Graph", shown)], steps)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_short_run_prints_a_line_an_epoch(fit, small, tmp_path, capsys):
    lines = printed(fit, small, tmp_path, capsys, steps=15)
    assert len(lines) == 3
    assert lines[1].split("  ") == [
        "Model on Graph",
        "step 10/15",
        "loss -0.9",
        "mAP 20",
        "kappa -0.50 -0.50",
    ]


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

"""The curves of a run and their file."""

import pandas as pd
import pytest
from torch import nn

from curvlab.callbacks import Curves, curvatures
from curvlab.manifolds import Euclidean, Stereographic


def test_curvatures_are_numbered_and_signed_and_a_shared_one_is_one():
    ball, other = (Stereographic(d, k, learnable=True) for d, k in ((2, -1.5), (3, 0.25)))
    module = nn.ModuleList([ball, Euclidean(2), other, nn.ModuleDict({"space": ball})])
    found = curvatures(module)
    assert {name: kappa.tolist() for name, kappa in found.items()} == {
        "kappa/0": [-1.5, -1.5],
        "kappa/1": [0.25, 0.25, 0.25],
    }
    assert not any(kappa.requires_grad for kappa in found.values())


@pytest.mark.parametrize("batches", [1, 3])
def test_one_row_an_epoch(fit, small, tmp_path, batches):
    path = tmp_path / "metrics.csv"
    curves = Curves(path)
    fit(small(), [curves], steps=12, batches=batches)
    table = pd.read_csv(path)
    assert list(table.columns) == ["step", "loss", "map", "kappa/0/0", "kappa/0/1"]
    assert table["step"].tolist() == [5, 10, 12]
    # The loss of the last step of an epoch, divided by the task's scale; the metric after it.
    assert table["loss"].tolist()[:2] == pytest.approx([-0.4, -0.9])
    assert table["map"].tolist()[:2] == [10.0, 20.0]
    assert (table["kappa/0/0"] == -0.5).all()
    measured = [row.dropna().to_dict() for _, row in table.iterrows()]
    assert curves.rows == measured


def rows_of(steps, evaluated=100):
    """A point every hundred steps, of which the metric is the step."""
    return [
        {"step": step, "loss": 0.0} | ({"map": float(step)} if step % evaluated == 0 else {})
        for step in range(100, steps + 1, 100)
    ]


@pytest.mark.parametrize(
    ("rows", "mean"),
    [
        (rows_of(10_000), (8_100 + 10_000) / 2),  # of 8,100, 8,200, ..., 10,000
        ([], None),
        (rows_of(1_900), None),
        (rows_of(10_000, evaluated=200), None),
    ],
    ids=["enough", "none", "short", "sparse"],
)
def test_the_mean_of_the_last_steps_is_of_twenty_evaluations(tmp_path, rows, mean):
    curves = Curves(tmp_path / "metrics.csv")
    curves.rows = rows
    assert curves.tail_mean("map") == mean
    assert curves.tail_mean("mrr") is None

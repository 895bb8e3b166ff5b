"""The task of graph reconstruction around a model."""

from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Data

from curvlab.manifolds import Euclidean, Stereographic
from curvlab.optim import Adam
from curvlab.tasks.pairs.loss import reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from curvlab.tasks.reconstruction import Reconstruction
from graphs import both_directions
from placed import Placed

POINTS = [(0.0, 0.0), (1.0, 0.1), (0.2, 1.9), (2.1, 2.0), (0.6, 1.1)]
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
ADAM = Adam(curvature_lr=0.02)


def example():
    return Data(x=torch.ones(5, 1), edge_index=both_directions(EDGES))


def task_at(points, space, power=2):
    return Reconstruction(Placed(points, space), ADAM, power)


def logged(task, step, batch, monkeypatch):
    """What a step of evaluation logs."""
    values = {}
    monkeypatch.setattr(task, "log", lambda name, value, **_: values.update({name: value}))
    step(task, batch, 0)
    return values


SCORES = [(Euclidean(conformal_factor=1.0), 1.0, 71.1111), (Stereographic(1, -1.0), 0.3, 67.7778)]


@pytest.mark.parametrize(("space", "scale", "expected"), SCORES)
def test_mean_average_precision_of_the_worked_example(space, scale, expected, monkeypatch):
    task = task_at([(scale * x, scale * y) for x, y in POINTS], space)
    test = logged(task, Reconstruction.test_step, example(), monkeypatch)
    assert test["test/map"].item() == pytest.approx(expected, abs=1e-4)
    task.trainer = SimpleNamespace(global_step=5, max_steps=5, num_training_batches=5)
    validation = logged(task, Reconstruction.validation_step, example(), monkeypatch)
    assert validation["map"].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("space", "scale", "power", "expected"),
    [
        (Euclidean(conformal_factor=1.0), 1.0, 2, 33.184273),
        (Stereographic(1, -1.0), 0.3, 1, 19.356221),
    ],
)
def test_loss_of_the_worked_example(space, scale, power, expected):
    task = task_at([(scale * x, scale * y) for x, y in POINTS], space, power)
    assert task.training_step(example(), 0).item() == pytest.approx(expected, rel=1e-6)
    assert task.loss_scale(example()) == 10


def test_another_graph_is_another_set_of_pairs():
    task = task_at(POINTS, Euclidean())
    first, second = example(), example()
    second.edge_index = second.edge_index[:, [0, 5]]
    for batch in (first, second, first):
        tiles = PairTiles(batch.edge_index, 5)
        expected = reconstruction_loss(task.encoder.points, Euclidean(), tiles)
        torch.testing.assert_close(task.training_step(batch, 0), expected)

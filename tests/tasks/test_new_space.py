"""A space of somebody else's works in every task: what tasks ask of a space, it answers."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.analysis.embeddings import Embedding, load_embedding, picture, save_embedding
from curvlab.callbacks import EncoderStatistics
from curvlab.data.splits.links import LinkSplit
from curvlab.manifolds import Manifold
from curvlab.manifolds.curved_trig import safe_sqrt
from curvlab.optim import Adam
from curvlab.tasks.filter_regression import FilterRegression
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import NodeClassification
from curvlab.tasks.reconstruction import Reconstruction
from graphs import ring
from placed import Placed

NODES = 12


class Cone(Manifold):
    """A plane in which distances are three times as long, with a height that says nothing."""

    codimension = 1

    def expmap0(self, v):
        x = v / 3
        return torch.cat([x.norm(dim=-1, keepdim=True), x], -1)

    def logmap0(self, x):
        return 3 * x[..., 1:]

    def add(self, x, y):
        return self.expmap0(self.logmap0(x) + self.logmap0(y))

    def dist(self, x, y):
        return safe_sqrt((self.logmap0(x) - self.logmap0(y)).square().sum(-1))


def on_a_cone():
    return Placed(Cone().expmap0(torch.randn(NODES, 4)), Cone())


def graph():
    data = Data(
        x=torch.randn(NODES, 3),
        edge_index=ring(NODES),
        y=torch.arange(NODES) % 3,
        target=torch.randn(NODES),
        scored=torch.ones(NODES, dtype=torch.bool),
    )
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = data.scored
    return data


TASKS = {
    "classes": lambda encoder: NodeClassification(encoder, num_classes=3),
    "labels": lambda encoder: NodeClassification(encoder, 3, metric="f1_macro", margin=1.0),
    "links": LinkPrediction,
    "pairs": Reconstruction,
    "signal": FilterRegression,
}


@pytest.mark.parametrize("kind", TASKS)
def test_it_trains_in_every_task(kind):
    data = LinkSplit(0.1, 0.2, 0)(graph(), 0) if kind == "links" else graph()
    task = TASKS[kind](on_a_cone())
    task.optimizer = Adam(lr=0.05)
    optimizer = task.configure_optimizers()
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        losses.append(task.training_step(data, 0))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_what_it_does_not_give_follows_from_what_it_gives():
    space, (v, w) = Cone(), torch.randn(2, 5, 4).double()
    x, y = space.expmap0(v), space.expmap0(w)
    distances = (v[:, None] - w).norm(dim=-1)
    torch.testing.assert_close(space.pairwise_sqdist(x, y), distances.square())
    torch.testing.assert_close(space.transport0(x, w)[:, 1:], w / 3)
    (middle,) = space.weighted_mean(x, lambda vectors: vectors.sum(-2, keepdim=True))
    torch.testing.assert_close(middle, space.expmap0(v.mean(0)))


def test_its_decoder_is_of_its_logarithms():
    task = NodeClassification(on_a_cone(), num_classes=3)
    assert (task.decoder.in_features, task.score) == (4, "accuracy")


def test_its_points_are_stored_drawn_and_counted(tmp_path):
    data, encoder = graph(), on_a_cone()
    points, space = picture(encoder.manifold_out, encoder(data))
    save_embedding(tmp_path / "points.npz", Embedding(points, space, data.edge_index))
    stored = load_embedding(tmp_path / "points.npz")
    assert stored.space.describe(4) == "Euclidean, 4 dimensions"
    shares = EncoderStatistics()
    shares.on_validation_epoch_start(None, NodeClassification(encoder, num_classes=3))
    encoder(data)
    assert shares._statistics == {}

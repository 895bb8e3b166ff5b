"""The share of embeddings at the limits of their space, in curves and results."""

import pandas as pd
import torch
from torch import nn

from curvlab.callbacks import Curves, PointShares
from curvlab.manifolds import Stereographic


class Points(nn.Module):
    """Gives points beyond the equator of the first of two components, and counts its calls."""

    def __init__(self, space) -> None:
        super().__init__()
        self.manifold_out = space
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x.new_tensor([[2.0, 0.0], [0.5, 0.1], [3.0, 0.2], [0.1, 0.3]])


def module(small, space):
    class WithEncoder(small):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = Points(space)

        def validation_step(self, batch, batch_idx):
            self.encoder(batch.x)
            super().validation_step(batch, batch_idx)

    return WithEncoder()


def test_one_row_has_the_shares_of_its_validation(fit, small, tmp_path, monkeypatch):
    made = module(small, Stereographic(2, 1.0, learnable=False))
    taken = []
    original = Stereographic.shares
    monkeypatch.setattr(Stereographic, "shares", lambda s, x: taken.append(1) or original(s, x))
    path = tmp_path / "metrics.csv"
    fit(made, [PointShares(), Curves(path)], steps=10)
    curves = pd.read_csv(path)
    assert curves["points/beyond_equator"].tolist() == [0.25, 0.25]
    assert curves["points/at_rim"].tolist() == [0, 0]
    assert made.encoder.calls == len(taken) == 2
    made.encoder(torch.zeros(1))
    assert len(taken) == 2

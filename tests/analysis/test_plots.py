"""Pictures show what they are given."""

import json

import matplotlib.image as mpimg
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from curvlab.analysis.embeddings import Embedding, save_embedding
from curvlab.analysis.figures import curvature_figure
from curvlab.analysis.plots import plot_run
from curvlab.manifolds import Euclidean, Stereographic
from graphs import of_networkx

pytestmark = pytest.mark.slow


def metrics():
    steps = np.arange(10, 110, 10)
    columns = {"step": steps, "loss": 1 / steps, "map": 90 + steps / 20}
    return pd.DataFrame(columns | {"kappa/0/0": -steps / 100, "kappa/0/1": -steps / 50})


def test_histogram_shares_sum_to_one_and_split_at_zero():
    values = np.array([-1.0, -0.02, 0.0, 0.03, 0.5])
    figure = curvature_figure({"A": (values, values.mean()), "B": (values[:2], -0.51)})
    for axis, negative in zip(figure.axes, (2 / 5, 1), strict=True):
        bars = [bar for bar in axis.patches if bar.get_height() > 0]
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1)
        below = [bar for bar in bars if bar.get_x() + bar.get_width() < 1e-9]
        assert sum(bar.get_height() for bar in below) == pytest.approx(negative)
        assert len({bar.get_facecolor() for bar in below}) == 1


def finished_run(folder, space):
    metrics().to_csv(folder / "metrics.csv", index=False)
    points = space.expmap0(torch.randn(12, 4))
    edges, _ = of_networkx(nx.star_graph(11))
    save_embedding(folder / "embeddings.npz", Embedding(points, space, edges))
    result = {"model": "fpst", "dataset": "web_edu", "seed": 3}
    (folder / "result.json").write_text(json.dumps(result))


@pytest.mark.parametrize("space", [Stereographic(2, kappa=-0.7), Euclidean(2)])
def test_a_runs_pictures_are_made_from_its_folder(space, tmp_path):
    finished_run(tmp_path, space)
    paths = plot_run(tmp_path)
    assert paths == [tmp_path / "plots" / f"{name}.png" for name in ("curves", "embedding")]
    assert all(mpimg.imread(path).std() > 0.01 for path in paths)

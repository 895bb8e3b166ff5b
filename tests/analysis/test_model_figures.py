"""Pictures of embeddings: names of the nodes of small graphs, whole numbers of neighbours."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import torch
from torch_geometric.utils import to_undirected

from curvlab.analysis.embeddings import Embedding
from curvlab.analysis.figures import curves_figure
from curvlab.analysis.model_figures import MAX_NODE_NAMES, embedding_figure
from curvlab.analysis.style import panels, save_figure
from curvlab.manifolds.euclidean_space import Euclidean


@pytest.mark.parametrize("nodes", [5, MAX_NODE_NAMES, MAX_NODE_NAMES + 1])
def test_nodes_of_small_graphs_are_named_and_degrees_are_whole(nodes):
    path = to_undirected(torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]))
    points = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(0))
    ids = [f"node {i}" for i in range(nodes)]
    figure = embedding_figure(Embedding(points, Euclidean(), path, ids=ids), "title")
    figure.canvas.draw()
    axis, bar = figure.axes
    named = [text.get_text() for text in axis.texts]
    assert named == (ids if nodes <= MAX_NODE_NAMES else [])
    assert all(tick == round(tick) for tick in bar.get_yticks())
    plt.close(figure)


@pytest.mark.parametrize("steps", [3, 20, 30, 250, 10_000])
def test_labels_of_steps_are_the_whole_numbers_of_their_ticks(steps):
    metrics = pd.DataFrame({"step": [1, steps], "loss": [2.0, 1.0], "map": [50.0, 60.0]})
    figure = curves_figure(metrics, "title")
    figure.canvas.draw()
    axis = figure.axes[-1].xaxis
    labels = [float(label.get_text().replace(",", "")) for label in axis.get_ticklabels()]
    assert labels == list(axis.get_ticklocs())
    plt.close(figure)


@pytest.mark.parametrize(("curvatures", "axes"), [([-1.0, -1.0], 1), ([-1.0, -1.1], 2)])
def test_curvatures_have_an_axis_unless_they_are_fixed(curvatures, axes):
    metrics = pd.DataFrame({"step": [1, 2], "map": [50.0, 60.0], "kappa/0/0": curvatures})
    figure = curves_figure(metrics.assign(**{"kappa/1/0": -1.0}), "title")
    assert len(figure.axes) == axes
    plt.close(figure)


def test_names_are_drawn_as_they_are_written_and_powers_as_formulas(tmp_path):
    names = ["$x_{$", r"$\frac", "_red", "$100-$200"]
    path = to_undirected(torch.stack([torch.arange(3), torch.arange(1, 4)]))
    points = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    embedding = Embedding(
        points, Euclidean(), path, classes=torch.arange(4), class_names=names, ids=names
    )
    figure = embedding_figure(embedding, "GCN on $a_{$")
    figure.axes[0].set_xscale("log")
    save_figure(figure, tmp_path / "embedding.png")
    axis, bar = figure.axes
    assert [text.get_text() for text in bar.get_yticklabels()] == names
    assert not any(text.get_parse_math() for text in [*bar.get_yticklabels(), *axis.texts])
    assert all(text.get_parse_math() for text in axis.get_xticklabels())
    (figure, _) = panels(1, 3, 2, "$a_{$")
    assert save_figure(figure, tmp_path / "empty.svg").exists()

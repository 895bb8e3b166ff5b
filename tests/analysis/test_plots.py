"""Pictures show what they are given, and nothing overlaps the canvas' edge."""

import json

import matplotlib.image as mpimg
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from curvlab.analysis.embedding_figures import NodeLooks, embedding_figure
from curvlab.analysis.embeddings import Embedding, principal_components, save_embedding
from curvlab.analysis.figures import Curve, comparison_figure, curves_figure
from curvlab.analysis.plots import plot_run
from curvlab.analysis.style import (
    LINES,
    key_name,
    legend_below,
    looks,
    metric_name,
    save_figure,
)
from curvlab.analysis.table_figures import curvature_figure
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Stereographic

pytestmark = pytest.mark.slow


def metrics(layers=1, heads=2):
    steps = np.arange(10, 110, 10)
    columns = {"step": steps, "loss": 1 / steps, "map": 90 + steps / 20}
    for layer in range(layers):
        for head in range(heads):
            columns[f"kappa/{layer}/{head}"] = -(head + 1) * steps / 100
    return pd.DataFrame(columns)


def assert_texts_are_apart_and_inside(figure):
    """No visible text crosses the canvas' edge or, among titles, labels and legends, another."""
    FigureCanvasAgg(figure).draw()
    canvas = figure.bbox
    boxes = []
    for axis in figure.axes:
        texts = [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        texts += axis.get_legend().get_texts() if axis.get_legend() else []
        boxes += [text.get_window_extent() for text in texts if text.get_text()]
    boxes += [text.get_window_extent() for text in figure.texts]
    for box in boxes:
        assert canvas.x0 <= box.x0 < box.x1 <= canvas.x1
        assert canvas.y0 <= box.y0 < box.y1 <= canvas.y1
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])


def test_curves_show_the_columns():
    figure = curves_figure(metrics(), "a run")
    score, curvature = figure.axes
    np.testing.assert_allclose(score.lines[0].get_ydata(), metrics()["map"])
    drawn = [line.get_ydata() for line in curvature.lines if len(line.get_xdata()) == 10]
    np.testing.assert_allclose(drawn, [metrics()["kappa/0/0"], metrics()["kappa/0/1"]])


@pytest.mark.parametrize(("layers", "heads"), [(0, 0), (1, 1), (1, 2), (4, 4)])
def test_curves_stay_readable(layers, heads):
    assert_texts_are_apart_and_inside(curves_figure(metrics(layers, heads), "FPS-T on Web-Edu"))


def test_curves_without_anything_to_draw_are_refused():
    with pytest.raises(UsageError, match="nothing to draw"):
        curves_figure(pd.DataFrame({"step": [1], "loss": [2.0]}), "a run")


def star(nodes=12):
    edges = torch.tensor(list(nx.star_graph(nodes - 1).edges)).T
    return torch.cat([edges, edges.flip(0)], dim=1)


def test_embedding_shows_every_node_and_each_edge_once():
    points, explained = principal_components(torch.rand(12, 3).double())
    values = np.arange(12)
    looks = NodeLooks(values, "value")
    figure = embedding_figure(points.numpy(), explained, star().numpy(), looks, "title", "subtitle")
    axis = figure.axes[0]
    lines, dots = axis.collections
    assert len(lines.get_segments()) == 11
    np.testing.assert_allclose(dots.get_offsets(), points)
    assert_texts_are_apart_and_inside(figure)


def test_histogram_shares_sum_to_one_and_split_at_zero():
    values = np.array([-1.0, -0.02, 0.0, 0.03, 0.5])
    figure = curvature_figure({"A": (values, values.mean()), "B": (values[:2], -0.51)})
    for axis, negative in zip(figure.axes, (2 / 5, 1), strict=True):
        bars = [bar for bar in axis.patches if bar.get_height() > 0]
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1)
        below = [bar for bar in bars if bar.get_x() + bar.get_width() < 1e-9]
        assert sum(bar.get_height() for bar in below) == pytest.approx(negative)
        assert len({bar.get_facecolor() for bar in below}) == 1
    assert_texts_are_apart_and_inside(figure)


def finished_run(folder, space):
    metrics().to_csv(folder / "metrics.csv", index=False)
    points = space.expmap0(torch.randn(12, 4))
    save_embedding(folder / "embeddings.npz", Embedding(points, space, star()))
    result = {"model": "fpst", "dataset": "web_edu", "seed": 3}
    (folder / "result.json").write_text(json.dumps(result))


@pytest.mark.parametrize("space", [Stereographic(2, kappa=-0.7), Euclidean(2)])
def test_a_runs_pictures_are_made_from_its_folder(space, tmp_path):
    finished_run(tmp_path, space)
    paths = plot_run(tmp_path)
    assert paths == [tmp_path / "plots" / f"{name}.png" for name in ("curves", "embedding")]
    assert all(mpimg.imread(path).std() > 0.01 for path in paths)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not the folder of a run"):
        plot_run(tmp_path)
    (tmp_path / "metrics.csv").write_text("")
    with pytest.raises(UsageError, match="not a table"):
        plot_run(tmp_path)


def classified(heads=1):
    table = metrics(heads=heads).drop(columns="map")
    for name, offset in (("accuracy", 0), ("f1_micro", 0), ("f1_macro", -5)):
        table.insert(2, f"val/{name}", 60 + table["step"] / 10 + offset)
    order = ["step", "loss", "val/accuracy", "val/f1_micro", "val/f1_macro"]
    return table[[*order, *(name for name in table if name.startswith("kappa/"))]]


def test_curves_of_classification_show_loss_and_metrics_of_validation():
    """Micro F1, which is the accuracy here, is not drawn over it."""
    table = classified()
    figure = curves_figure(table, "a run")
    loss, scores, curvature = figure.axes
    np.testing.assert_allclose(loss.lines[0].get_ydata(), table["loss"])
    drawn = {
        line.get_label(): line.get_ydata() for line in scores.lines if len(line.get_xdata()) > 1
    }
    assert drawn.keys() == {"accuracy", "macro-F1"}
    np.testing.assert_allclose(drawn["macro-F1"], table["val/f1_macro"])
    assert "highest accuracy of these points 70.00" in scores.get_title(loc="left")
    assert curvature.lines
    assert_texts_are_apart_and_inside(figure)


def test_nodes_are_coloured_by_their_class_if_they_have_one():
    classes = np.array([2, 0, 1, 1, 0, 2])
    edges = torch.tensor(list(nx.path_graph(6).edges)).T.numpy()
    xy, explained = principal_components(torch.randn(6, 3))
    looks = NodeLooks(classes, "class", True, ["a", "b", "c"])
    figure = embedding_figure(xy.numpy(), explained, edges, looks, "a run")
    FigureCanvasAgg(figure).draw()
    axis, bar = figure.axes
    (points,) = [drawn for drawn in axis.collections if drawn.get_array() is not None]
    colours = {
        tuple(xy): tuple(c)
        for xy, c in zip(points.get_offsets().tolist(), points.get_facecolors(), strict=True)
    }
    by_node = [colours[tuple(xy)] for xy in xy.tolist()]
    assert by_node[0] == by_node[5]
    assert len(set(by_node)) == 3
    assert [tick.get_text() for tick in bar.get_yticklabels()] == ["a", "b", "c"]


def test_no_two_of_many_lines_look_the_same():
    found = looks([f"model {i}" for i in range(len(LINES) * 4)])
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("map", "mAP (%)"),
        ("kappa/0/1", "curvature κ of layer 1, head 2"),
        ("val/mrr", "validation MRR"),
        ("val/raw_hits10", "validation raw Hits@10"),
        ("something_else", "something else"),
    ],
)
def test_columns_and_keys_are_words(column, words):
    assert metric_name(column) == words
    assert key_name("dataset.source.num_nodes") == "nodes"
    assert key_name("model.ffn_ratio") == "ffn ratio"


def test_legends_are_no_wider_than_the_figure():
    line = pd.Series([1.0, 2.0], pd.Index([1, 2]))
    curves = [Curve(f"a run with a long name, number {i}", line) for i in range(9)]
    figure = comparison_figure(curves, "loss")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.get_window_extent().width


def test_an_svg_is_the_same_when_it_is_drawn_again(tmp_path):
    for name in ("a.svg", "b.svg"):
        figure = Figure(layout="constrained")
        figure.subplots().plot([1, 2], label="line")
        legend_below(figure, figure.axes[0])
        save_figure(figure, tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second
    assert first.startswith(b"<?xml")

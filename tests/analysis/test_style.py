"""Colours of figures: one a model, apart for colour-blind readers; labels in words; files."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from curvlab.analysis.figures import Curve, comparison_figure
from curvlab.analysis.style import (
    LINES,
    key_name,
    legend_below,
    looks,
    metric_name,
    save_figure,
)

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.


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

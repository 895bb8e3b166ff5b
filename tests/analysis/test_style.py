"""Colours of figures: one a model, apart for colour-blind readers; labels in words; files."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
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
VISION = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "usual": np.eye(3).tolist(),
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(color, vision):
    """CIELAB of a colour as seen."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    seen = np.clip(np.array(vision) @ linear, 0, 1)
    x, y, z = np.array(TO_XYZ) @ seen / [0.9505, 1, 1.089]
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colours_are_apart_for_colour_blind_readers(vision):
    seen = [lab(color, VISION[vision]) for color in LINES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


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
def test_columns_are_words(column, words):
    assert metric_name(column) == words


def test_keys_are_words():
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

"""Embeddings as pictures: two principal components of the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure

from curvlab.analysis.style import MUTED, color_bar, panels, styled

NAMED_CLASSES = 20


@dataclass(frozen=True)
class NodeLooks:
    """Values of the nodes that colour them, such as their degree, on a log scale over a wide range.

    If they are `categorical`, values are classes 0, 1, ..., -1 is grey, and `names` those of the
    classes.
    """

    values: np.ndarray
    label: str
    categorical: bool = False
    names: Sequence[str] | None = None


@styled
def embedding_figure(
    points: np.ndarray,
    explained: Sequence[float],
    edge_index: np.ndarray,
    looks: NodeLooks,
    title: str,
    subtitle: str = "",
) -> Figure:
    """Scatter of two principal components `[nodes, 2]`, edges drawn lightly.

    `explained` is the fraction of the variance that each of the two explains.
    """
    figure, (axis,) = panels(1, 7, 5.5, title)
    axis.set_title(subtitle, fontsize=9, color=MUTED)
    lines = points[edge_index[:, edge_index[0] < edge_index[1]].T]
    alpha = float(np.clip(800 / (len(lines) + 1), 0.01, 0.35))  # many lines add up to black
    options: dict[str, Any] = {"colors": MUTED, "linewidths": 0.4, "alpha": alpha, "zorder": 1}
    axis.add_collection(LineCollection(list(lines), **options))
    values = looks.values
    count = int(values.max()) + 1
    if looks.categorical:
        order = np.random.default_rng(0).permutation(len(values))  # no class on top
        palette: Colormap = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
        palette = palette.with_extremes(under="lightgrey")  # nodes without a class
        norm: Normalize = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    else:
        order = np.argsort(values, kind="stable")  # large values on top
        low, high = values.min(), max(values.max(), values.min() + 1)
        palette = colormaps["viridis"]
        norm = (LogNorm if low > 0 and values.max() > 20 * low else Normalize)(low, high)
    size = float(np.clip(30_000 / len(points), 4, 40))
    options = {"cmap": palette, "norm": norm, "linewidths": 0, "zorder": 2}
    drawn = axis.scatter(points[order, 0], points[order, 1], size, values[order], **options)
    ticks = np.arange(count) if looks.categorical else None
    bar = color_bar(figure, drawn, axis, looks.label, ticks=ticks)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if looks.categorical and looks.names is not None and count <= NAMED_CLASSES:
        bar.set_ticks(list(range(count)), labels=[name[:16] for name in looks.names[:count]])
    first, second = explained
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, colors=MUTED)
    return figure

"""Figures of models: embeddings, weights of branches, filters, relations."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from curvlab.analysis.embeddings import Embedding, principal_components, tangent_coordinates
from curvlab.analysis.filters import EIGENVALUES, FilterCluster
from curvlab.analysis.routing import Routing
from curvlab.analysis.style import INK, LINES, MUTED, POSITIVE, color_bar, panels, styled
from curvlab.errors import UsageError

MAX_CLASS_NAMES = 20
MAX_NODE_NAMES = 50
MAX_RELATIONS = 30
"""Largest numbers of classes and nodes with names in a figure, and of relations."""

LOG_RATIO = 20
"""Ratio of the largest and smallest degree from which colours are logarithmic."""


@styled
def embedding_figure(embedding: Embedding, title: str) -> Figure:
    """Draw two principal components, coloured by class or degree, and the edges."""
    coordinates = tangent_coordinates(embedding.points, embedding.space)
    components, (first, second) = principal_components(coordinates)
    points = components.numpy()
    edge_index = embedding.edge_index.numpy()
    figure, (axis,) = panels(1, 7, 5.5, title)
    subtitle = embedding.space.describe(embedding.points.shape[1])
    axis.set_title(subtitle, fontsize=9, color=MUTED)
    lines = points[edge_index[:, edge_index[0] < edge_index[1]].T]
    alpha = float(np.clip(800 / (len(lines) + 1), 0.01, 0.35))  # many lines add up to black
    options: dict[str, Any] = {"colors": MUTED, "linewidths": 0.4, "alpha": alpha, "zorder": 1}
    axis.add_collection(LineCollection(list(lines), **options))
    if embedding.classes is not None:
        _draw_classes(figure, axis, points, embedding)
    else:
        _draw_degrees(figure, axis, points, edge_index)
    if embedding.ids is not None and len(points) <= MAX_NODE_NAMES:
        options = {"textcoords": "offset points", "fontsize": 7, "color": INK}
        for name, point in zip(embedding.ids, points, strict=True):
            axis.annotate(str(name)[:16], point, (3, 3), **options)
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, colors=MUTED)
    return figure


def _draw_classes(figure: Figure, axis: Axes, points: np.ndarray, embedding: Embedding) -> None:
    """Draw points coloured by class; nodes without a class, of number -1, are grey."""
    classes = np.asarray(embedding.classes)
    count = int(classes.max()) + 1
    palette = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
    palette = palette.with_extremes(under="lightgrey")
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    order = np.random.default_rng(0).permutation(len(classes))  # no class is on top
    scatter = _scatter(axis, points[order], classes[order], palette, norm)
    bar = color_bar(figure, scatter, axis, "class", ticks=np.arange(count))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    names = embedding.class_names
    if names is not None and count <= MAX_CLASS_NAMES:
        bar.set_ticks(list(range(count)), labels=[name[:16] for name in names[:count]])


def _draw_degrees(figure: Figure, axis: Axes, points: np.ndarray, edge_index: np.ndarray) -> None:
    """Draw points coloured by degree."""
    degrees = np.bincount(edge_index[0], minlength=len(points)).clip(1)  # for a logarithmic scale
    low = degrees.min()
    high = max(degrees.max(), low + 1)
    is_logarithmic = degrees.max() > LOG_RATIO * low
    norm = LogNorm(low, high) if is_logarithmic else Normalize(low, high)
    order = np.argsort(degrees, kind="stable")  # large degrees are on top
    scatter = _scatter(axis, points[order], degrees[order], colormaps["viridis"], norm)
    bar = color_bar(figure, scatter, axis, "number of neighbours")
    if not is_logarithmic:
        bar.locator = MaxNLocator(integer=True)
        bar.update_ticks()
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _scatter(
    axis: Axes, points: np.ndarray, values: np.ndarray, palette: Colormap, norm: Normalize
) -> PathCollection:
    size = float(np.clip(30_000 / len(points), 4, 40))
    x, y = points[:, :2].T
    return axis.scatter(x, y, size, values, cmap=palette, norm=norm, linewidths=0, zorder=2)


@styled
def ternary_figure(routing: Routing, title: str) -> Figure:
    """Draw the weights of three branches for all test queries, as barycentric coordinates."""
    weights = routing.weights
    if weights.shape[1] != 3:
        raise UsageError(f"a triangle has three corners, the model {weights.shape[1]} branches")
    height = float(np.sqrt(3) / 2)
    corners = np.array([[0.5, height], [0.0, 0.0], [1.0, 0.0]])
    figure, (axis,) = panels(1, 6.8, 5.5, title)
    subtitle = f"weights of the branches, {len(weights):,} test queries"
    axis.set_title(subtitle, fontsize=9, color=MUTED)
    for share in (0.2, 0.4, 0.6, 0.8):
        for i, corner in enumerate(corners):
            ends = share * corner + (1 - share) * np.delete(corners, i, axis=0)
            axis.plot(*ends.T, color="#e6e6e6", linewidth=0.8, zorder=0)
    axis.fill(*corners.T, facecolor="none", edgecolor=INK, linewidth=1)
    points = weights @ corners
    options: dict[str, Any] = {"bins": "log", "cmap": "viridis", "linewidths": 0.2, "mincnt": 1}
    hexagons = axis.hexbin(*points.T, gridsize=(60, 30), extent=(0, 1, 0, height), **options)
    axis.plot(*points.mean(0), marker="x", color=POSITIVE, markersize=9, markeredgewidth=2)
    for name, mean, (x, y) in zip(routing.branches, weights.mean(0), corners, strict=True):
        text = f"{name.replace('_', ' ')}\nmean {mean:.2f}"
        if y > 0:
            axis.text(x, y + 0.03, text, ha="center", va="bottom")
        else:
            axis.text(x, -0.03, text, ha="center", va="top")
    color_bar(figure, hexagons, axis, "queries")
    axis.set(xlim=(-0.12, 1.12), ylim=(-0.15, height + 0.14), aspect="equal")
    axis.axis("off")
    return figure


FilterPanel = tuple[Sequence[FilterCluster], Sequence[np.ndarray]]
"""Clusters of learned filters, and the true responses `[eigenvalues]` if these are known."""


@styled
def filters_figure(filters: Mapping[str, FilterPanel]) -> Figure:
    """Draw responses of learned filters; true filters are dashed (PolyFormer, Figures 2 to 6)."""
    figure, axes = panels(len(filters), 6.2, 3.4, columns=min(len(filters), 2))
    for axis, (title, (clusters, true_responses)) in zip(axes, filters.items(), strict=True):
        for i, response in enumerate(true_responses):
            label = "true filters" if i == 0 else None
            axis.plot(EIGENVALUES, response, "--", color=INK, linewidth=1.2, label=label)
        for color, cluster in zip(cycle(LINES), clusters, strict=False):
            label = f"{cluster.share:.1%} of nodes"
            axis.plot(EIGENVALUES, cluster.mean, color=color, label=label)
            axis.fill_between(EIGENVALUES, cluster.low, cluster.high, color=color, alpha=0.15)
        axis.set(xlabel="eigenvalue of the normalised Laplacian", ylabel="response")
        axis.set(title=title, xlim=(0, 2))
        axis.legend(fontsize=8)
    return figure


@styled
def relations_figure(relations: pd.DataFrame, title: str) -> Figure:
    """Draw the MRR of the relations with most test queries, coloured by category.

    If the run ranks both sides, the MRR is that of both.
    """
    side = relations["side"].min()  # "both" is before "tail"
    rows = relations[relations["side"] == side].head(MAX_RELATIONS)[::-1]
    figure, (axis,) = panels(1, 6.4, 0.8 + 0.24 * len(rows), title)
    categories = sorted(rows["category"].unique())
    colors = dict(zip(categories, LINES, strict=False))
    labels = []
    for name, count in zip(rows["relation"], rows["queries"], strict=True):
        short_name = name if len(name) <= 40 else f"...{name[-37:]}"
        labels.append(f"{short_name} ({count:,})")
    heights = np.arange(len(rows))
    axis.barh(heights, rows["mrr"], color=rows["category"].map(colors))
    axis.set_yticks(heights, labels, fontsize=8)
    side = {"both": "heads and tails", "tail": "tails"}[side]
    axis.set(xlabel=f"mean reciprocal rank of {side}", xlim=(0, 1))
    handles = [Patch(color=color, label=name) for name, color in colors.items()]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    axis.grid(visible=False, axis="y")
    return figure

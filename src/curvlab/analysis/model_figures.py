"""Figures of what models have learned: embeddings, weights of branches, filters, relations."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from curvlab.analysis.embeddings import Embedding, principal_components, tangent_coordinates
from curvlab.analysis.filters import EIGENVALUES, FilterCluster
from curvlab.analysis.routing import Routing
from curvlab.analysis.style import INK, LINES, MUTED, POSITIVE, color_bar, panels, styled
from curvlab.errors import UsageError

NAMED_CLASSES = 20
NAMED_NODES = 50
SHOWN_RELATIONS = 30


@styled
def embedding_figure(embedding: Embedding, title: str) -> Figure:
    """Scatter of two principal components, coloured by class or degree, edges drawn lightly."""
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
        values = np.asarray(embedding.classes)
        names = embedding.class_names
        count = int(values.max()) + 1
        order = np.random.default_rng(0).permutation(len(values))  # no class on top
        palette: Colormap = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
        palette = palette.with_extremes(under="lightgrey")  # nodes without a class, of number -1
        norm: Normalize = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    else:
        values = np.bincount(edge_index[0], minlength=len(points)).clip(1)  # of a log scale
        order = np.argsort(values, kind="stable")  # large values on top
        low = values.min()
        high = max(values.max(), values.min() + 1)
        palette = colormaps["viridis"]
        norm = (LogNorm if values.max() > 20 * low else Normalize)(low, high)
    size = float(np.clip(30_000 / len(points), 4, 40))
    options = {"cmap": palette, "norm": norm, "linewidths": 0, "zorder": 2}
    drawn = axis.scatter(points[order, 0], points[order, 1], size, values[order], **options)
    if embedding.classes is None:
        bar = color_bar(figure, drawn, axis, "number of neighbours")
        if not isinstance(norm, LogNorm):
            bar.locator = MaxNLocator(integer=True)
            bar.update_ticks()
    else:
        bar = color_bar(figure, drawn, axis, "class", ticks=np.arange(count))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if embedding.classes is not None and names is not None and count <= NAMED_CLASSES:
        bar.set_ticks(list(range(count)), labels=[name[:16] for name in names[:count]])
    if embedding.ids is not None and len(points) <= NAMED_NODES:
        for name, place in zip(embedding.ids, points, strict=True):
            axis.annotate(
                str(name)[:16], place, (3, 3), textcoords="offset points", fontsize=7, color=INK
            )
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, colors=MUTED)
    return figure


@styled
def ternary_figure(routing: Routing, title: str) -> Figure:
    """How many test queries have which weights of three branches, as barycentric places."""
    weights = routing.weights
    if weights.shape[1] != 3:
        raise UsageError(f"a triangle has three corners, the model {weights.shape[1]} branches")
    height = float(np.sqrt(3) / 2)
    places = np.array([[0.5, height], [0.0, 0.0], [1.0, 0.0]])
    figure, (axis,) = panels(1, 6.8, 5.5, title)
    subtitle = f"weights of the branches, {len(weights):,} test queries"
    axis.set_title(subtitle, fontsize=9, color=MUTED)
    for share in (0.2, 0.4, 0.6, 0.8):
        for corner in range(3):
            ends = share * places[corner] + (1 - share) * np.delete(places, corner, axis=0)
            axis.plot(*ends.T, color="#e6e6e6", linewidth=0.8, zorder=0)
    axis.fill(*places.T, facecolor="none", edgecolor=INK, linewidth=1)
    points = weights @ places
    options: dict[str, Any] = {"bins": "log", "cmap": "viridis", "linewidths": 0.2, "mincnt": 1}
    drawn = axis.hexbin(*points.T, gridsize=(60, 30), extent=(0, 1, 0, height), **options)
    axis.plot(*points.mean(0), marker="x", color=POSITIVE, markersize=9, markeredgewidth=2)
    for name, mean, (x, y) in zip(routing.branches, weights.mean(0), places, strict=True):
        side = {"y": y + 0.03, "va": "bottom"} if y else {"y": -0.03, "va": "top"}
        axis.text(x=x, s=f"{name.replace('_', ' ')}\nmean {mean:.2f}", ha="center", **side)
    color_bar(figure, drawn, axis, "queries")
    axis.set(xlim=(-0.12, 1.12), ylim=(-0.15, height + 0.14), aspect="equal")
    axis.axis("off")
    return figure


FilterPanel = tuple[Sequence[FilterCluster], Sequence[np.ndarray]]
"""Clusters of learned filters, and the true responses `[eigenvalues]` where they are known."""


@styled
def filters_figure(filters: Mapping[str, FilterPanel]) -> Figure:
    """Responses of learned filters; true ones are dashed (PolyFormer, Figures 2 to 6)."""
    figure, axes = panels(len(filters), 6.2, 3.4, columns=min(len(filters), 2))
    for axis, (title, (clusters, known)) in zip(axes, filters.items(), strict=True):
        for i, true in enumerate(known):
            label = "true filters" if i == 0 else None
            axis.plot(EIGENVALUES, true, "--", color=INK, linewidth=1.2, label=label)
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
    """MRR of the relations with most test queries, coloured by category; both sides if ranked."""
    shown = relations[relations["side"] == relations["side"].min()].head(SHOWN_RELATIONS)[::-1]
    figure, (axis,) = panels(1, 6.4, 0.8 + 0.24 * len(shown), title)
    categories = sorted(shown["category"].unique())
    colors = dict(zip(categories, LINES, strict=False))
    names = [name if len(name) <= 40 else f"...{name[-37:]}" for name in shown["relation"]]
    places = np.arange(len(shown))
    axis.barh(places, shown["mrr"], color=shown["category"].map(colors))
    labels = [f"{name} ({count:,})" for name, count in zip(names, shown["queries"], strict=True)]
    axis.set_yticks(places, labels, fontsize=8)
    side = {"both": "heads and tails", "tail": "tails"}[shown["side"].iloc[0]]
    axis.set(xlabel=f"mean reciprocal rank of {side}", xlim=(0, 1))
    handles = [Patch(color=color, label=name) for name, color in colors.items()]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    axis.grid(visible=False, axis="y")
    return figure

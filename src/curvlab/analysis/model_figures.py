"""Figures of what models have learned: weights of branches, filters of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure

from curvlab.analysis.filters import EIGENVALUES, FilterCluster
from curvlab.analysis.style import INK, LINES, MUTED, POSITIVE, tidy
from curvlab.errors import UsageError


def ternary_figure(
    weights: np.ndarray, corners: Sequence[str], title: str, subtitle: str = ""
) -> Figure:
    """How many tokens have which weights of three branches, in a triangle.

    A token stands at the mean of the corners under its weights. The cross is the mean of all.

    Args:
        weights: `[tokens, 3]`, rows that add up to 1.
        corners: What each of the three is called.
        title: Heading.
        subtitle: Second line.

    Raises:
        UsageError: There are not three branches.
    """
    if weights.shape[1] != 3:
        raise UsageError(f"a triangle has three corners, the model {weights.shape[1]} branches")
    height = float(np.sqrt(3) / 2)
    places = np.array([[0.5, height], [0.0, 0.0], [1.0, 0.0]])
    figure = Figure(figsize=(6.8, 6), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axis = figure.add_subplot()
    axis.set_title(subtitle, loc="left", fontsize=9, color=MUTED)
    for share in np.linspace(0, 1, 6)[1:-1]:
        for corner in range(3):
            others = places[[i for i in range(3) if i != corner]]
            ends = share * places[corner] + (1 - share) * others
            axis.plot(*ends.T, color="#e6e6e6", linewidth=0.8, zorder=0)
    axis.fill(*places.T, facecolor="none", edgecolor=INK, linewidth=1)
    points = weights @ places
    drawn = axis.hexbin(
        points[:, 0],
        points[:, 1],
        gridsize=(60, 30),
        extent=(0, 1, 0, height),
        mincnt=1,
        bins="log",
        cmap="viridis",
        linewidths=0.2,
    )
    axis.plot(*points.mean(0), marker="x", color=POSITIVE, markersize=9, markeredgewidth=2)
    texts = ((0.5, height + 0.03, "center", "bottom"), (0, -0.03, "center", "top"))
    for name, mean, (x, y, horizontal, vertical) in zip(
        corners, weights.mean(0), (*texts, (1, -0.03, "center", "top")), strict=True
    ):
        axis.text(x, y, f"{name}\nmean {mean:.2f}", ha=horizontal, va=vertical, fontsize=10)
    bar = figure.colorbar(drawn, ax=axis, shrink=0.7, pad=0.04)
    bar.set_label("queries")
    bar.outline.set_visible(False)
    axis.set_xlim(-0.12, 1.12)
    axis.set_ylim(-0.15, height + 0.14)
    axis.set_aspect("equal")
    axis.axis("off")
    return figure


@dataclass(frozen=True)
class FilterPanel:
    """Clusters of learned filters, and the true responses `[eigenvalues]` where they are known."""

    clusters: Sequence[FilterCluster]
    true: Sequence[np.ndarray]


def filters_figure(panels: Mapping[str, FilterPanel]) -> Figure:
    """Responses of learned filters by Laplacian eigenvalue, a line a cluster, one panel a run.

    A band holds the responses of all but a tenth of a cluster's nodes at either end; true filters
    are dashed. Source: PolyFormer, Figures 2 to 6.

    Args:
        panels: For each panel's title what is drawn.
    """
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(6 * columns + 1, 0.4 + 3.4 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, panel) in zip(axes, panels.items(), strict=False):
        tidy(axis)
        for i, true in enumerate(panel.true):
            label = "true filters" if i == 0 else None
            axis.plot(EIGENVALUES, true, color=INK, linewidth=1.2, dashes=(4, 3), label=label)
        for color, cluster in zip(cycle(LINES), panel.clusters, strict=False):
            label = f"{cluster.share:.1%} of nodes"
            axis.plot(EIGENVALUES, cluster.mean, color=color, linewidth=1.6, label=label)
            axis.fill_between(EIGENVALUES, cluster.low, cluster.high, color=color, alpha=0.15)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("eigenvalue of the normalised Laplacian")
        axis.set_ylabel("response")
        axis.set_xlim(0, 2)
        axis.legend(frameon=False, fontsize=8)
    return figure

"""Figures: curves of a run, an embedding, the curvature of graphs. No global state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from curvlab.analysis.embeddings import Projection
from curvlab.analysis.filters import EIGENVALUES, FilterCluster
from curvlab.errors import UsageError
from curvlab.files import arriving

NEGATIVE, POSITIVE, INK, MUTED = "#2a6fbb", "#d9722e", "#222222", "#777777"
LINES = ("#2a6fbb", "#d9722e", "#2e8b57", "#b03a7c", "#7a5fc4", "#8a6d1d", "#1f9aa8", "#c0392b")
DASHES = ("solid", "dashed", "dotted", "dashdot")  # once the colours are used up
DPI = 150
MOST_CURVATURES = 48


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, whole or not at all, and return the path."""
    FigureCanvasAgg(figure)
    with arriving(path) as partial:
        figure.savefig(partial, format="png", dpi=DPI)
    return path


def curves_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Metrics and every curvature against the step, one axis below the other.

    Args:
        metrics: Columns `step`, and `map` (percent), or `loss` and `val/METRIC` (percent, or
            fractions) with the one that chooses weights first, and `kappa/LAYER/COMPONENT`; empty
            where a step has no value; any of these kinds may be missing.
        title: Heading.

    Raises:
        UsageError: There is nothing to draw.
    """
    kappas = [name for name in metrics.columns if name.startswith("kappa/")]
    scores = [
        name
        for name in metrics.columns
        if name.startswith("val/") and not name.startswith("val/routing_")
    ]
    kinds = {"map": "map" in metrics, "loss": scores, "scores": scores, "kappa": kappas}
    panels = [kind for kind, there in kinds.items() if there]
    if "step" not in metrics or not panels:
        raise UsageError(
            "the curves have no column step with map, val/... or kappa/...: nothing to draw."
        )
    figure = Figure(figsize=(7, 2.2 + 1.9 * len(panels)), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, kind in zip(axes, panels, strict=True):
        _tidy(axis)
        if kind == "map":
            last = _line(axis, metrics, "map", LINES[0])
            axis.set_ylabel("mAP (%)")
            axis.set_title(f"mean average precision, last {last:.2f}", loc="left", fontsize=10)
        elif kind == "loss":
            last = _line(axis, metrics, "loss", LINES[0])
            axis.set_ylabel("loss")
            axis.set_title(f"loss of the training part, last {last:.3g}", loc="left", fontsize=10)
        elif kind == "scores":
            _draw_scores(axis, metrics, scores)
        else:
            _draw_curvatures(axis, metrics, kappas)
    axes[-1].set_xlabel("optimiser step")
    axes[-1].set_xlim(left=0)
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


def _draw_scores(axis: Axes, metrics: pd.DataFrame, names: Sequence[str]) -> None:
    """Metrics of the validation part; of those that are equal throughout, the first.

    Fractions have another axis than ranks, which are left out.
    """
    fractions = metrics[names[0]].max() <= 1
    if fractions:
        names = [name for name in names if metrics[name].max() <= 1]
    different = metrics[list(names)].T.drop_duplicates().index
    for name, color in zip(different, LINES, strict=False):
        _line(axis, metrics, name, color, name.removeprefix("val/"))
    axis.set_ylabel("validation" if fractions else "validation (%)")
    best = f"{metrics[names[0]].max():.{4 if fractions else 2}f}"
    title = f"validation part, highest {names[0].removeprefix('val/')} of these points {best}"
    axis.set_title(title, loc="left", fontsize=10)
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)


def _draw_curvatures(axis: Axes, metrics: pd.DataFrame, names: Sequence[str]) -> None:
    """Every curvature, of many the first ones."""
    names = names[:MOST_CURVATURES]
    axis.axhline(0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    for position, name in enumerate(names):
        _, layer, component = name.split("/")
        label = f"layer {int(layer) + 1}, head {int(component) + 1}"
        dashes, color = divmod(position, len(LINES))
        _line(axis, metrics, name, LINES[color], label, DASHES[dashes % len(DASHES)])
    axis.set_ylabel("curvature κ")
    axis.set_title("below 0 hyperbolic, above 0 spherical", loc="left", fontsize=10)
    columns = 1 + (len(names) - 1) // 12
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8, ncols=columns)


def _line(
    axis: Axes,
    metrics: pd.DataFrame,
    name: str,
    color: str,
    label: str | None = None,
    linestyle: str = "solid",
) -> float:
    """Draw a column where it has values, mark its end and return its last value."""
    values = metrics[["step", name]].dropna()
    if values.empty:
        return float("nan")
    steps, heights = values["step"].to_numpy(), values[name].to_numpy()
    axis.plot(steps, heights, color=color, linewidth=1.6, label=label, linestyle=linestyle)
    axis.plot(steps[-1], heights[-1], "o", color=color, markersize=4)
    return float(heights[-1])


def embedding_figure(
    projection: Projection,
    edge_index: np.ndarray,
    values: np.ndarray,
    value_label: str,
    title: str,
    subtitle: str = "",
    categorical: bool = False,
) -> Figure:
    """Scatter of two principal components, coloured by a value a node, edges drawn lightly.

    Args:
        projection: Coordinates `[nodes, 2]`.
        edge_index: Edges `[2, edges]`.
        values: What colours the nodes, `[nodes]`, for instance their degree.
        value_label: What the colour bar says; values over a wide positive range are on a log scale.
        title: Heading.
        subtitle: Second line, for instance the curvatures.
        categorical: Whether values are classes 0, 1, ..., each with a colour of its own.
    """
    figure = Figure(figsize=(7, 6), layout="constrained")
    axis = figure.add_subplot()
    axis.set_title(title, loc="left", fontsize=12, pad=22)
    axis.text(0, 1.02, subtitle, transform=axis.transAxes, fontsize=9, color=MUTED)
    points = projection.coordinates.numpy()
    once = edge_index[0] < edge_index[1]
    alpha = float(np.clip(800 / (once.sum() + 1), 0.01, 0.35))  # many lines add up to black
    segments = LineCollection(
        list(points[edge_index[:, once].T]), colors=MUTED, linewidths=0.4, alpha=alpha, zorder=1
    )
    axis.add_collection(segments)
    order = np.argsort(values, kind="stable")  # large values on top
    wide = values.min() > 0 and values.max() > 20 * values.min()
    low, high = values.min(), max(values.max(), values.min() + 1)
    count = int(values.max()) + 1
    if categorical:
        order = np.random.default_rng(0).permutation(len(values))  # no class on top
        palette: Colormap = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
        norm: Normalize = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    else:
        palette, norm = colormaps["viridis"], (LogNorm if wide else Normalize)(low, high)
    drawn = axis.scatter(
        points[order, 0],
        points[order, 1],
        c=values[order],
        s=float(np.clip(30_000 / len(points), 4, 40)),
        cmap=palette,
        norm=norm,
        linewidths=0,
        zorder=2,
    )
    ticks = np.arange(count) if categorical else None
    bar = figure.colorbar(drawn, ax=axis, shrink=0.8, pad=0.02, ticks=ticks)
    bar.set_label(value_label)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    bar.outline.set_visible(False)
    first, second = projection.explained
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, labelsize=8, colors=MUTED)
    return figure


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


def curvature_figure(curvatures: Mapping[str, tuple[np.ndarray, float]]) -> Figure:
    """Histograms of sectional curvature, one graph a row, on common axes.

    Args:
        curvatures: For each graph's label its curvatures of triples `[triples]` and their mean.
    """
    rows = len(curvatures)
    figure = Figure(figsize=(7, 1.1 + 1.5 * rows), layout="constrained")
    figure.suptitle("Sectional curvature of triples", fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    low = min(float(values.min()) for values, _ in curvatures.values())
    high = max(float(values.max()) for values, _ in curvatures.values())
    width = 0.05
    bins = np.arange(np.floor(low / width), np.ceil(high / width) + 1.5) * width  # 0 is an edge
    for axis, (label, (values, mean)) in zip(axes, curvatures.items(), strict=True):
        _tidy(axis)
        share = np.histogram(values, bins)[0] / len(values)
        colors = np.where(bins[:-1] < -width / 2, NEGATIVE, POSITIVE)
        axis.bar(bins[:-1], share, width * 0.9, align="edge", color=colors)
        axis.axvline(mean, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axis.set_title(
            f"{label}: mean {mean:.2f}, {len(values):,} triples", loc="left", fontsize=10
        )
        axis.yaxis.set_major_locator(MaxNLocator(3))
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    figure.supylabel("share of triples", fontsize=10)
    axes[-1].set_xlabel("curvature (blue: below 0, as in hyperbolic space; orange: 0 and above)")
    return figure


def scaling_figure(panels: Mapping[str, Mapping[str, pd.Series]], x_label: str) -> Figure:
    """Costs against a size, both logarithmic, one panel below the other; slopes by least squares.

    Args:
        panels: For each panel's title, each method's cost by size (the index).
        x_label: What the size is.

    Raises:
        UsageError: There is nothing to draw.
    """
    panels = {title: lines for title, lines in panels.items() if any(map(len, lines.values()))}
    if not panels:
        raise UsageError("no finished run has a number of this table: nothing to draw")
    figure = Figure(figsize=(7, 0.7 + 2.8 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        _tidy(axis)
        for color, (label, costs) in zip(cycle(LINES), lines.items(), strict=False):
            if len(costs):
                axis.loglog(
                    costs.index.to_numpy(float),
                    costs.to_numpy(float),
                    marker="o",
                    markersize=4,
                    color=color,
                    label=label + _slope(costs),
                )
        axis.set_title(title, loc="left", fontsize=10)
        axis.legend(frameon=False, fontsize=9)
    axes[-1].set_xlabel(x_label)
    return figure


def depth_figure(title: str, lines: Mapping[str, "pd.Series[float]"], reference: str) -> Figure:
    """Scores less those of a reference of the same depth, against the number of layers.

    Args:
        title: Heading.
        lines: Each method's score by number of layers (the index), the reference's among them;
            depths without a number of both are left out.
        reference: Which of the lines the others are compared with.

    Raises:
        UsageError: There is nothing to draw.
    """
    gaps = {
        label: (scores - lines[reference]).dropna()
        for label, scores in lines.items()
        if label != reference
    }
    if not any(map(len, gaps.values())):
        raise UsageError(f"no depth has a number of {reference} and of another: nothing to draw")
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axis = figure.subplots()
    _tidy(axis)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    for color, (label, gap) in zip(cycle(LINES), gaps.items(), strict=False):
        if len(gap):
            depths = gap.index.to_numpy(float)
            axis.plot(depths, gap.to_numpy(float), "o-", markersize=4, color=color, label=label)
    ticks = sorted({float(depth) for gap in gaps.values() for depth in gap.index})
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlabel("layers")
    axis.set_ylabel(f"points above {reference}")
    axis.set_title(title, loc="left", fontsize=10)
    axis.legend(frameon=False, fontsize=9)
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
        _tidy(axis)
        for i, true in enumerate(panel.true):
            label = "true filters" if i == 0 else None
            axis.plot(EIGENVALUES, true, color=INK, linewidth=1.2, dashes=(4, 3), label=label)
        for color, cluster in zip(cycle(LINES), panel.clusters, strict=False):
            label = f"{cluster.share:.0%} of nodes"
            axis.plot(EIGENVALUES, cluster.mean, color=color, linewidth=1.6, label=label)
            axis.fill_between(EIGENVALUES, cluster.low, cluster.high, color=color, alpha=0.15)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("eigenvalue of the normalised Laplacian")
        axis.set_ylabel("response")
        axis.set_xlim(0, 2)
        axis.legend(frameon=False, fontsize=8)
    return figure


def _slope(costs: "pd.Series[float]") -> str:
    """Words for the slope of the logarithms; none for a single size."""
    if len(costs) < 2:
        return ""
    slope = np.polyfit(np.log(costs.index.to_numpy(float)), np.log(costs.to_numpy(float)), 1)[0]
    return f" (slope {slope:.2f})"


def _tidy(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=9)

"""Figures of runs and graphs: curves, an embedding, the curvature of graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from scipy.special import stdtrit

from curvlab.analysis.embeddings import Projection
from curvlab.analysis.style import (
    DASHES,
    INK,
    LINES,
    MUTED,
    NEGATIVE,
    POSITIVE,
    legend_below,
    looks,
    tidy,
)
from curvlab.analysis.words import metric_words
from curvlab.errors import UsageError

MOST_CURVATURES = 48
NAMED_CURVATURES = 4
NAMED_CLASSES = 20

MARKERS = {0: ("o", "training"), 1: ("^", "validation"), 2: ("s", "test"), -1: (".", "no part")}
"""Marker and name of each part of a split."""


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
        tidy(axis)
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
            _draw_curvatures(figure, axis, metrics, kappas)
    axes[-1].set_xlabel("optimiser step")
    axes[-1].set_xlim(left=0)
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return figure


@dataclass(frozen=True)
class Curve:
    """A metric of one run.

    Attributes:
        name: what the run is called where no other word is free.
        model: its label; empty where nothing says it.
        dataset: its label.
        seed: of the run.
        values: the metric by step (the index).
    """

    name: str
    values: "pd.Series[float]"
    model: str = ""
    dataset: str = ""
    seed: int | None = None


def comparison_figure(curves: Sequence[Curve], metric: str) -> Figure:
    """A metric of several runs against the step, the best last value first in the legend.

    Runs of several seeds are one line, their mean, in a band of its 95% interval (Student's t).
    What all runs share is in the title, the rest in the legend.

    Args:
        curves: Of the runs.
        metric: The metric's column in `metrics.csv`.
    """
    figure = Figure(figsize=(7, 4.8), layout="constrained")
    axis = figure.subplots()
    tidy(axis)
    groups = _by_seed(curves)
    shared = {curve.dataset for curve in curves} if all(c.model for c in curves) else set()
    seeds = {curve.seed for curve in curves}
    by_model = len({own[0].model for own in groups}) == len(groups) and len(shared) == 1
    names = [own[0].model if by_model else own[0].name for own in groups]
    if by_model:
        count = "seed" if len(seeds) == 1 else f"{len(seeds)} seeds, mean and 95% interval:"
        words = f"{shared.pop()}, {count} {', '.join(map(str, sorted(seeds, key=str)))}"
        axis.set_title(words, loc="left", fontsize=11)
    drawn = {name: _mean_and_interval(own) for name, own in zip(names, groups, strict=True)}
    order = sorted(drawn, key=lambda name: drawn[name][0].iloc[-1], reverse=True)
    look = looks(order)
    for name in order:
        mean, pm = drawn[name]
        steps, values = mean.index.to_numpy(float), mean.to_numpy(float)
        color, dash, marker = look[name]
        axis.plot(
            steps,
            values,
            color=color,
            linestyle=dash,
            linewidth=1.5,
            marker=marker,
            markersize=4,
            markevery=max(1, len(steps) // 12),
            label=f"{name}: {values[-1]:.4g}",
        )
        axis.fill_between(steps, values - pm, values + pm, color=color, alpha=0.15, linewidth=0)
    axis.set_xlabel("optimiser step")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.set_ylabel(metric_words(metric))
    legend_below(figure, axis)
    return figure


def _by_seed(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Runs that differ in nothing but their seed; each alone where two have one seed."""
    groups: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.model, curve.dataset), []).append(curve)
    found = []
    for own in groups.values():
        one_line = bool(own[0].model) and len({curve.seed for curve in own}) == len(own)
        found += [own] if one_line else [[curve] for curve in own]
    return found


def _mean_and_interval(curves: Sequence[Curve]) -> tuple["pd.Series[float]", np.ndarray]:
    """Means by step and the half widths of their 95% intervals, 0 of one run."""
    table = pd.concat([curve.values for curve in curves], axis=1).dropna()
    runs = table.shape[1]
    if runs == 1:
        return table.iloc[:, 0], np.zeros(len(table))
    width = stdtrit(runs - 1, 0.975) / runs**0.5
    return table.mean(axis=1), width * table.std(axis=1).to_numpy(float)


def _draw_scores(axis: Axes, metrics: pd.DataFrame, names: Sequence[str]) -> None:
    """Metrics of the validation part; of metrics that are equal throughout, the first.

    Fractions have another axis than ranks, which are left out.
    """
    fractions = metrics[names[0]].max() <= 1
    if fractions:
        names = [name for name in names if metrics[name].max() <= 1]
    different = metrics[list(names)].T.drop_duplicates().index
    for name, color in zip(different, LINES, strict=False):
        _line(axis, metrics, name, color, metric_words(name.removeprefix("val/")))
    axis.set_ylabel("validation" if fractions else "validation (%)")
    best = f"{metrics[names[0]].max():.{4 if fractions else 2}f}"
    first = metric_words(names[0].removeprefix("val/"))
    title = f"validation part, highest {first} of these points {best}"
    axis.set_title(title, loc="left", fontsize=10)
    axis.legend(loc="best", frameon=False, fontsize=8, ncols=1 + (len(different) - 1) // 4)


def _draw_curvatures(
    figure: Figure, axis: Axes, metrics: pd.DataFrame, names: Sequence[str]
) -> None:
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
    if len(names) > NAMED_CURVATURES:
        legend_below(figure, axis, size=7)
    else:
        axis.legend(loc="best", frameon=False, fontsize=8)


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


@dataclass(frozen=True)
class NodeLooks:
    """How nodes are drawn.

    Attributes:
        values: what colours them, `[nodes]`, for instance their degree; values over a wide positive
            range are on a log scale.
        label: what the colour bar says.
        categorical: whether values are classes 0, 1, ..., each with a colour of its own.
        parts: 0 training, 1 validation, 2 test, -1 none of them, `[nodes]`; each has a marker.
        names: of the classes.
    """

    values: np.ndarray
    label: str
    categorical: bool = False
    parts: np.ndarray | None = None
    names: Sequence[str] | None = None


def embedding_figure(
    projection: Projection,
    edge_index: np.ndarray,
    looks: NodeLooks,
    title: str,
    subtitle: str = "",
) -> Figure:
    """Scatter of two principal components, edges drawn lightly.

    Args:
        projection: Coordinates `[nodes, 2]`.
        edge_index: Edges `[2, edges]`.
        looks: How nodes are drawn.
        title: Heading.
        subtitle: Second line, for instance the curvatures.
    """
    figure = Figure(figsize=(7, 6), layout="constrained")
    axis = figure.add_subplot()
    axis.set_title(title, loc="left", fontsize=12, pad=22)
    axis.text(0, 1.02, subtitle, transform=axis.transAxes, fontsize=9, color=MUTED)
    points = projection.coordinates.numpy()
    once = edge_index[0] < edge_index[1]
    draw_lines(axis, list(points[edge_index[:, once].T]))
    drawn = draw_nodes(axis, points, looks)
    draw_legends(figure, [axis], drawn, looks)
    first, second = projection.explained
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, labelsize=8, colors=MUTED)
    return figure


def draw_lines(axis: Axes, lines: Sequence[np.ndarray]) -> None:
    """Draw edges, each `[points, 2]`, the more lightly the more there are."""
    alpha = float(np.clip(800 / (len(lines) + 1), 0.01, 0.35))  # many lines add up to black
    segments = LineCollection(lines, colors=MUTED, linewidths=0.4, alpha=alpha, zorder=1)
    axis.add_collection(segments)


def draw_nodes(axis: Axes, points: np.ndarray, looks: NodeLooks) -> PathCollection:
    """Draw nodes `[nodes, 2]`, a marker for each part; returns what a colour bar is made of."""
    values = looks.values
    order = np.argsort(values, kind="stable")  # large values on top
    wide = values.min() > 0 and values.max() > 20 * values.min()
    low, high = values.min(), max(values.max(), values.min() + 1)
    count = int(values.max()) + 1
    if looks.categorical:
        order = np.random.default_rng(0).permutation(len(values))  # no class on top
        palette: Colormap = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
        norm: Normalize = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    else:
        palette, norm = colormaps["viridis"], (LogNorm if wide else Normalize)(low, high)
    size = float(np.clip(30_000 / len(points), 4, 40))
    parts = np.zeros(len(points), dtype=int) if looks.parts is None else looks.parts
    for part in sorted(set(parts.tolist()), reverse=True):
        some = order[parts[order] == part]
        drawn = axis.scatter(
            points[some, 0],
            points[some, 1],
            c=values[some],
            s=size * (1.4 if part > 0 else 1),
            marker=MARKERS[part][0],
            cmap=palette,
            norm=norm,
            linewidths=0,
            zorder=2,
        )
    return drawn


def draw_legends(
    figure: Figure, axes: Sequence[Axes], drawn: PathCollection, looks: NodeLooks
) -> None:
    """Say what colours are, and which marker is of which part."""
    count = int(looks.values.max()) + 1
    ticks = np.arange(count) if looks.categorical else None
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.02, ticks=ticks)
    bar.set_label(looks.label)
    if looks.categorical and looks.names is not None and count <= NAMED_CLASSES:
        bar.set_ticks(list(range(count)), labels=[name[:16] for name in looks.names[:count]])
    else:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    bar.outline.set_visible(False)
    there = [part for part in MARKERS if looks.parts is not None and part in looks.parts]
    if len(there) > 1:
        markers = (MARKERS[part] for part in there)
        handles = [Line2D([], [], marker=m, color=MUTED, ls="", label=name) for m, name in markers]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=len(there), frameon=False, fontsize=9
        )


def curvature_figure(curvatures: Mapping[str, tuple[np.ndarray, float]]) -> Figure:
    """Histograms of sectional curvature, on a common axis; more than four graphs in three columns.

    Args:
        curvatures: For each graph's label its curvatures of triples `[triples]` and their mean.
    """
    columns = 1 if len(curvatures) <= 4 else 3
    rows = -(-len(curvatures) // columns)
    figure = Figure(figsize=(3 + 4 * columns, 1.1 + 1.5 * rows), layout="constrained")
    figure.suptitle("Sectional curvature of triples", fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for unused in axes[len(curvatures) :]:
        unused.remove()
    low = min(float(values.min()) for values, _ in curvatures.values())
    high = max(float(values.max()) for values, _ in curvatures.values())
    width = 0.05
    bins = np.arange(np.floor(low / width), np.ceil(high / width) + 1.5) * width  # 0 is an edge
    for axis, (label, (values, mean)) in zip(axes, curvatures.items(), strict=False):
        tidy(axis)
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
    for axis in axes[max(len(curvatures) - columns, 0) : len(curvatures)]:
        axis.tick_params(labelbottom=True)
    figure.supxlabel(
        "curvature (blue: below 0, as in hyperbolic space; orange: 0 and above)", fontsize=10
    )
    return figure

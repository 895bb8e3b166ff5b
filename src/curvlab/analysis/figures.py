"""Figures of runs and of tables: curves, costs, leaderboards, maps of studies, histograms."""

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from curvlab.analysis.style import (
    INK,
    LINES,
    MUTED,
    NEGATIVE,
    POSITIVE,
    color_bar,
    key_name,
    legend_below,
    line_styles,
    metric_name,
    panels,
    styled,
)  # fmt: skip
from curvlab.errors import UsageError
from curvlab.statistics import student

if TYPE_CHECKING:
    from curvlab.tables.boards import Leaderboard

BIN = 0.05  # width of a bar of the histograms of curvature

MAX_CURVATURES = 48
"""Largest number of curvatures in the curves of a run."""

MAX_INNER_LEGEND = 4
"""Largest number of curvatures whose legend is inside the axes."""


@styled
def curves_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Draw metrics and curvatures of `metrics.csv` against the step, one axis below another.

    Fixed curvatures have no axis.
    """
    metrics = metrics.dropna(axis=1, how="all")
    columns_by_kind = _curves(metrics)
    if "step" not in metrics or not columns_by_kind:
        raise UsageError(
            "the curves have no column step with map, val/... or kappa/...: nothing to draw."
        )
    figure, axes = panels(len(columns_by_kind), 7, 2.3, title, sharex=True)
    table = metrics.set_index("step")
    for axis, (kind, columns) in zip(axes, columns_by_kind.items(), strict=True):
        for column, style in line_styles(columns).items():
            label = metric_name(column.removeprefix("val/"))
            label = label.removeprefix("curvature κ of ")
            _line(axis, table[column].dropna(), {**style, "marker": "o"}, label, [-1])
        label, heading = _describe_curves(kind, columns[0], table[columns[0]].dropna())
        axis.set_ylabel(label)
        axis.set_title(heading)
        if kind == "kappa":
            axis.axhline(0, color=MUTED, linewidth=0.8, linestyle="dashed")
        if kind == "kappa" and len(columns) > MAX_INNER_LEGEND:
            legend_below(figure, axis, size=7)
        elif kind in ("kappa", "val"):
            axis.legend(fontsize=8, ncols=1 + (len(columns) - 1) // 4)
    _label_steps(axes[-1])
    return figure


def _curves(metrics: pd.DataFrame) -> dict[str, list[str]]:
    """Columns of the curves by their kind: map, loss, val, kappa."""
    columns = list(map(str, metrics.columns))
    scores = [name for name in columns if name.startswith("val/")]
    scores = [name for name in scores if not name.startswith("val/routing_")]
    if scores and metrics[scores[0]].max() <= 1:  # fractions; ranks have another scale
        scores = [name for name in scores if metrics[name].max() <= 1]
    scores = list(map(str, metrics[scores].T.drop_duplicates().index))
    kappas = [name for name in columns if name.startswith("kappa/")][:MAX_CURVATURES]
    if all(metrics[name].nunique() == 1 for name in kappas):
        kappas = []
    losses = ["loss"] if scores else []
    columns_by_kind = {"map": ["map"], "loss": losses, "val": scores, "kappa": kappas}
    return {kind: names for kind, names in columns_by_kind.items() if names and names[0] in metrics}


def _describe_curves(kind: str, column: str, values: "pd.Series[float]") -> tuple[str, str]:
    """Label and heading of an axis with curves, by the values of the first curve."""
    if kind == "map":
        return "mAP (%)", f"mean average precision, last {values.iloc[-1]:.2f}"
    if kind == "loss":
        return "loss", f"loss of the training part, last {values.iloc[-1]:.3g}"
    if kind == "kappa":
        return "curvature κ", "below 0 hyperbolic, above 0 spherical"
    highest = values.max()
    best = f"highest {metric_name(column.removeprefix('val/'))} of these points"
    if highest <= 1:
        return "validation", f"validation part, {best} {highest:.4f}"
    return "validation (%)", f"validation part, {best} {highest:.2f}"


@styled
def comparison_figure(curves: pd.DataFrame, metric: str) -> Figure:
    """Draw a metric of several runs by step, the best last value first in the legend.

    Runs that differ only in their seed are one line: their mean, in a band of its 95 % interval.
    """
    runs = curves.drop_duplicates("name")
    line = "name"
    run_key = ["model", "dataset", "seed"]
    figure, (axis,) = panels(1, 7, 4.3)
    if runs["model"].ne("").all() and not runs.duplicated(run_key).any():
        line = "line"
        datasets = list(runs["dataset"].unique())
        names = curves["model"]
        if len(datasets) > 1:
            names = names + " on " + curves["dataset"]
        curves = curves.assign(line=names)
        seeds = sorted(set(runs["seed"]), key=str)
        count = "seed" if len(seeds) == 1 else "seeds"
        if runs.duplicated(["model", "dataset"]).any():
            count = f"{len(seeds)} seeds, mean and 95% interval:"
        title = f"{', '.join(datasets)}, {count} {', '.join(map(str, seeds))}"
        axis.set_title(title, fontsize=11)
    statistics = curves.groupby([line, "step"])["value"].agg(["mean", "sem", "size"])
    lines = {}
    for name in curves[line].unique():
        curve = statistics.loc[name]
        is_common_step = curve["size"] == curve["size"].max()
        lines[name] = curve[is_common_step]
    order = sorted(lines, key=lambda name: lines[name]["mean"].iloc[-1], reverse=True)
    for name, style in line_styles(order).items():
        mean = lines[name]["mean"]
        steps = lines[name].index.to_numpy(float)
        label = f"{name}: {mean.iloc[-1]:.4g}"
        _line(axis, mean, style, label, max(1, len(mean) // 12))
        pm = (lines[name]["sem"] * student(lines[name]["size"] - 1)).fillna(0)
        band: dict[str, Any] = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        axis.fill_between(steps, mean - pm, mean + pm, **band)
    _label_steps(axis)
    axis.set_ylabel(metric_name(metric))
    legend_below(figure, axis)
    return figure


@styled
def scaling_figure(costs: Mapping[str, pd.DataFrame], key: str) -> Figure:
    """Draw costs by size, one panel per cost, on logarithmic axes; slopes by least squares."""
    costs = {title: lines for title, lines in costs.items() if lines.notna().any(axis=None)}
    if not costs:
        raise UsageError("no finished run has a number of this table: nothing to draw")
    figure, axes = panels(len(costs), 7, 2.8, sharex=True)
    for axis, (title, lines) in zip(axes, costs.items(), strict=True):
        axis.set(xscale="log", yscale="log", title=title)
        for method, style in line_styles(map(str, lines)).items():
            values = lines[method].dropna()
            label = method
            if len(values) > 1:
                log_sizes = np.log(values.index.to_numpy(float))
                log_costs = np.log(values.to_numpy(float))
                slope, _ = np.polyfit(log_sizes, log_costs, 1)
                label = f"{method} (slope {slope:.2f})"
            if len(values):
                _line(axis, values, style, label)
        axis.legend()
    axes[-1].set_xlabel(key_name(key))
    return figure


@styled
def depth_figure(title: str, lines: pd.DataFrame, diverged: pd.DataFrame) -> Figure:
    """Draw scores by depth minus the first column's scores; crosses where runs `diverged`."""
    reference, *methods = lines.columns
    differences = lines[methods].sub(lines[reference], axis=0)
    if differences.isna().all(axis=None):
        raise UsageError(f"no depth has a number of {reference} and of another: nothing to draw")
    figure, (axis,) = panels(1, 7, 4.3)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    height = 0.03
    for label, style in line_styles(methods).items():
        color = style["color"]
        if differences[label].notna().any():
            _line(axis, differences[label].dropna(), style, label)
        depths = diverged.index[diverged[label] > 0]
        if len(depths):
            transform = axis.get_xaxis_transform()  # the height is a share of the axis
            heights = [height] * len(depths)
            crosses = axis.plot(depths, heights, "x", color=color, transform=transform)
            crosses[0].set_gid(f"not finite: {label}")
            options: dict[str, Any] = {"fontsize": 7, "color": color, "va": "center"}
            axis.text(0.01, height, label, transform=axis.transAxes, **options)
            height += 0.05
    if height > 0.03:
        axis.plot([], [], "x", color=INK, label="not finite")
    has_runs = differences.notna().any(axis=1) | (diverged > 0).any(axis=1)
    ticks = has_runs.index[has_runs].sort_values()
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set(xlabel="layers", ylabel=f"points above {reference}", title=title)
    low, high = axis.get_ylim()
    axis.set_ylim(low - height * (high - low), high)  # crosses are below all lines
    legend_below(figure, axis)
    return figure


def _line(
    axis: Axes, values: "pd.Series[float]", style: dict[str, str], label: str, every: Any = 1
) -> None:
    """Draw values against their index, with a marker at each `every`-th point."""
    x = values.index.to_numpy(float)
    y = values.to_numpy(float)
    options: dict[str, Any] = {**style, "markevery": every, "label": label}
    axis.plot(x, y, **options)


def _label_steps(axis: Axes) -> None:
    axis.set_xlabel("optimiser step")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


@styled
def leaderboard_figure(board: "Leaderboard", pairs: pd.DataFrame) -> Figure:
    """Draw mean ranks with the critical difference, and pairs by the shape of the graph."""
    measures = {
        "mean_delta": "mean Gromov delta",
        "homophily": "homophily (share of edges within a class)",
    }
    rows: list[Any] = [["rank", "rank"]]
    if not pairs.empty:
        rows.append(list(measures))
    figure = Figure(figsize=(10, 3.5 * len(rows)), layout="constrained")
    axes = figure.subplot_mosaic(rows)
    _draw_ranks(axes["rank"], board)
    if not pairs.empty:
        for measure, label in measures.items():
            _draw_pairs(axes[measure], pairs, measure, label)
        legend_below(figure, axes["mean_delta"], size=8)
    return figure


def groups(board: "Leaderboard") -> list[tuple[int, int]]:
    """First and last model of each maximal group within the critical difference, by rank."""
    ranks = board.mean_ranks.to_numpy()
    limits = ranks + board.critical_difference
    last_models = np.searchsorted(ranks, limits, "right") - 1
    pairs = list[tuple[int, int]]()
    for first, last in enumerate(map(int, last_models)):
        is_contained = bool(pairs) and last <= pairs[-1][1]
        if last > first and not is_contained:
            pairs.append((first, last))
    return pairs


def _draw_ranks(axis: Axes, board: "Leaderboard") -> None:
    ranks = board.mean_ranks
    heights = np.arange(len(ranks))
    axis.scatter(ranks.to_numpy(), heights, color=LINES[0], zorder=2)
    axis.set_yticks(heights, [str(name) for name in ranks.index])
    axis.invert_yaxis()
    if isfinite(board.critical_difference):
        for i, (first, last) in enumerate(groups(board)):
            right = ranks.iloc[last] + 0.15 + 0.12 * i
            axis.plot([right, right], [first, last], color=INK, linewidth=2.5)
    number = board.scores.shape[1]
    note = "bars join models without a significant difference, 5 %"
    axis.set(xlabel=f"mean rank over {number} datasets ({note})", title=board.title)
    axis.grid(axis="y", visible=False)
    axis.grid(axis="x")


def _draw_pairs(axis: Axes, pairs: pd.DataFrame, measure: str, label: str) -> None:
    axis.axhline(0, color=MUTED, linewidth=0.8)
    labels = pairs["curved"] + " minus " + pairs["flat"]
    styles = line_styles(labels)
    for name, points in pairs.dropna(subset=measure).groupby(labels, sort=False):
        options: Any = {**styles[str(name)], "linestyle": "", "elinewidth": 1, "label": name}
        axis.errorbar(points[measure], points["difference"], points["pm"].fillna(0), **options)
    axis.set(xlabel=label, ylabel="curved minus flat")


@styled
def grid_figure(cells: pd.DataFrame, x: str, y: str, title: str) -> Figure:
    """Draw a map of studies from `grid_cells`.

    Colours are differences from flat space; significant differences have a frame.
    """
    table = cells.pivot(index="row", columns="column", values="difference")
    rows = list(table.index)
    columns = list(table.columns)
    width = max(1.6 + 1.15 * len(columns), 5.5)
    height = max(1.4 + 0.8 * len(rows), 2.7)
    figure, (axis,) = panels(1, width, height, title)
    largest = max(float(cells["difference"].abs().max()), 1e-9)
    # purple and orange: distinguishable for colour-blind readers, white in the middle
    norm = TwoSlopeNorm(0.0, -largest, largest)
    numbers = table.to_numpy(dtype=float)
    image = axis.imshow(numbers, cmap="PuOr", norm=norm, aspect="auto", origin="lower")
    cell: Any
    for cell in cells.itertuples():
        column = columns.index(cell.column)
        row = rows.index(cell.row)
        pm = f" ± {cell.pm:.1f}" if isfinite(cell.pm) else ""
        text = f"{cell.difference:+.1f}{pm}\n{cell.space}"
        color = "white" if abs(cell.difference) > 0.7 * largest else INK
        axis.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
        if cell.found:
            corner = column - 0.47, row - 0.46
            frame = Rectangle(corner, 0.94, 0.92, fill=False, edgecolor=INK, linewidth=1.6)
            axis.add_patch(frame)
    axis.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axis.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axis.set(xlabel=key_name(x), ylabel=key_name(y))
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    color_bar(figure, image, axis, "points above flat")
    return figure


@styled
def curvature_figure(curvatures: Mapping[str, tuple[np.ndarray, float]]) -> Figure:
    """Draw histograms of sectional curvature `[triples]` with their means, on a common axis."""
    columns = 1 if len(curvatures) <= 4 else 3
    title = "Sectional curvature of triples"
    figure, axes = panels(len(curvatures), 4 + 3 / columns, 1.6, title, columns, sharex=True)
    all_values = np.concatenate([values for values, _ in curvatures.values()])
    low = np.floor(all_values.min() / BIN)
    high = np.ceil(all_values.max() / BIN)
    bins = np.arange(low, high + 1.5) * BIN  # 0 is an edge
    colors = np.where(bins[:-1] < -BIN / 2, NEGATIVE, POSITIVE)
    for i, (axis, label) in enumerate(zip(axes, curvatures, strict=True)):
        values, mean = curvatures[label]
        counts, _ = np.histogram(values, bins)
        axis.bar(bins[:-1], counts / len(values), BIN * 0.9, align="edge", color=colors)
        axis.axvline(mean, color=INK, linewidth=1.2, linestyle="dashed")
        axis.set_title(f"{label}: mean {mean:.2f}, {len(values):,} triples")
        axis.yaxis.set_major_locator(MaxNLocator(3))
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axis.tick_params(labelbottom=i >= len(axes) - columns)
    figure.supylabel("share of triples", fontsize=10)
    figure.supxlabel(
        "curvature (blue: below 0, as in hyperbolic space; orange: 0 and above)", fontsize=10
    )
    return figure

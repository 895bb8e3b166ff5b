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
    looks,
    metric_name,
    panels,
    styled,
)  # fmt: skip
from curvlab.errors import UsageError
from curvlab.statistics import student

if TYPE_CHECKING:
    from curvlab.tables.boards import Leaderboard

MOST_CURVATURES = 48
NAMED_CURVATURES = 4


@styled
def curves_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Metrics and curvatures of `metrics.csv` against the step, on axes below each other.

    Fixed curvatures have no axis.
    """
    metrics = metrics.dropna(axis=1, how="all")
    columns = list(map(str, metrics.columns))
    scores = [n for n in columns if n.startswith("val/") and not n.startswith("val/routing_")]
    fractions = bool(scores) and metrics[scores[0]].max() <= 1
    if fractions:  # ranks have another scale
        scores = [name for name in scores if metrics[name].max() <= 1]
    scores = list(map(str, metrics[scores].T.drop_duplicates().index))
    kappas = [name for name in columns if name.startswith("kappa/")][:MOST_CURVATURES]
    if all(metrics[name].nunique() == 1 for name in kappas):
        kappas = []
    kinds = {"map": ["map"], "loss": ["loss"] if scores else [], "val": scores, "kappa": kappas}
    drawn = {kind: names for kind, names in kinds.items() if names and names[0] in metrics}
    if "step" not in metrics or not drawn:
        raise UsageError(
            "the curves have no column step with map, val/... or kappa/...: nothing to draw."
        )
    figure, axes = panels(len(drawn), 7, 2.3, title, sharex=True)
    table = metrics.set_index("step")
    for axis, (kind, names) in zip(axes, drawn.items(), strict=True):
        for name, style in looks(names).items():
            label = metric_name(name.removeprefix("val/")).removeprefix("curvature κ of ")
            _line(axis, table[name].dropna(), {**style, "marker": "o"}, label, [-1])
        first = table[names[0]].dropna()
        digits = 4 if fractions else 2
        best = f"{metric_name(names[0].removeprefix('val/'))} of these points"
        label, heading = {
            "map": ("mAP (%)", f"mean average precision, last {first.iloc[-1]:.2f}"),
            "loss": ("loss", f"loss of the training part, last {first.iloc[-1]:.3g}"),
            "val": (
                "validation" if fractions else "validation (%)",
                f"validation part, highest {best} {first.max():.{digits}f}",
            ),
            "kappa": ("curvature κ", "below 0 hyperbolic, above 0 spherical"),
        }[kind]
        axis.set_ylabel(label)
        axis.set_title(heading)
        if kind == "kappa":
            axis.axhline(0, color=MUTED, linewidth=0.8, linestyle="dashed")
        if kind == "kappa" and len(names) > NAMED_CURVATURES:
            legend_below(figure, axis, size=7)
        elif kind in ("kappa", "val"):
            axis.legend(fontsize=8, ncols=1 + (len(names) - 1) // 4)
    _steps(axes[-1])
    return figure


@styled
def comparison_figure(curves: pd.DataFrame, metric: str) -> Figure:
    """A column of `metrics.csv` of several runs by step, the best last value first in the legend.

    Runs that differ in their seed alone are one line, their mean, in a band of its 95 % interval.
    """
    runs = curves.drop_duplicates("name")
    line = "name"
    run_key = ["model", "dataset", "seed"]
    figure, (axis,) = panels(1, 7, 4.3)
    if runs["model"].ne("").all() and not runs.duplicated(run_key).any():
        line = "line"
        datasets = list(runs["dataset"].unique())
        several = " on " + curves["dataset"] if len(datasets) > 1 else ""
        curves = curves.assign(line=curves["model"] + several)
        seeds = sorted(set(runs["seed"]), key=str)
        count = "seed" if len(seeds) == 1 else f"{len(seeds)} seeds, mean and 95% interval:"
        title = f"{', '.join(datasets)}, {count} {', '.join(map(str, seeds))}"
        axis.set_title(title, fontsize=11)
    spread = curves.groupby([line, "step"])["value"].agg(["mean", "sem", "size"])
    lines = {}
    for name in curves[line].unique():
        curve = spread.loc[name]
        lines[name] = curve[curve["size"] == curve["size"].max()]  # steps that all its runs have
    order = sorted(lines, key=lambda name: lines[name]["mean"].iloc[-1], reverse=True)
    for name, style in looks(order).items():
        mean = lines[name]["mean"]
        steps = lines[name].index.to_numpy(float)
        label = f"{name}: {mean.iloc[-1]:.4g}"
        _line(axis, mean, style, label, max(1, len(mean) // 12))
        pm = (lines[name]["sem"] * student(lines[name]["size"] - 1)).fillna(0)
        axis.fill_between(
            steps, mean - pm, mean + pm, color=style["color"], alpha=0.15, linewidth=0
        )
    _steps(axis)
    axis.set_ylabel(metric_name(metric))
    legend_below(figure, axis)
    return figure


@styled
def scaling_figure(costs: Mapping[str, pd.DataFrame], key: str) -> Figure:
    """Costs by size of each panel's methods, both logarithmic; slopes by least squares."""
    drawn = {title: lines for title, lines in costs.items() if lines.notna().any(axis=None)}
    if not drawn:
        raise UsageError("no finished run has a number of this table: nothing to draw")
    figure, axes = panels(len(drawn), 7, 2.8, sharex=True)
    for axis, (title, lines) in zip(axes, drawn.items(), strict=True):
        axis.set(xscale="log", yscale="log", title=title)
        for label, style in looks(map(str, lines)).items():
            values = lines[label].dropna()
            slope = ""
            if len(values) > 1:
                sizes = np.log(values.index.to_numpy(float))
                slope = f" (slope {np.polyfit(sizes, np.log(values.to_numpy(float)), 1)[0]:.2f})"
            if len(values):
                _line(axis, values, style, label + slope)
        axis.legend()
    axes[-1].set_xlabel(key_name(key))
    return figure


@styled
def depth_figure(title: str, lines: pd.DataFrame, diverged: pd.DataFrame) -> Figure:
    """Scores by depth minus those of the first column; crosses where runs `diverged`."""
    reference, *methods = lines.columns
    differences = lines[methods].sub(lines[reference], axis=0)
    if differences.isna().all(axis=None):
        raise UsageError(f"no depth has a number of {reference} and of another: nothing to draw")
    figure, (axis,) = panels(1, 7, 4.3)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    height = 0.03
    for label, style in looks(methods).items():
        if differences[label].notna().any():
            _line(axis, differences[label].dropna(), style, label)
        ended = diverged.index[diverged[label] > 0]
        if len(ended):
            across = axis.get_xaxis_transform()  # the height is a share of the axis
            heights = [height] * len(ended)
            crosses = axis.plot(ended, heights, "x", color=style["color"], transform=across)
            crosses[0].set_gid(f"not finite: {label}")
            place: dict[str, Any] = {"fontsize": 7, "color": style["color"], "va": "center"}
            axis.text(0.01, height, label, transform=axis.transAxes, **place)
            height += 0.05
    if height > 0.03:
        axis.plot([], [], "x", color=INK, label="not finite")
    shown = differences.notna().any(axis=1) | (diverged > 0).any(axis=1)
    ticks = shown.index[shown].sort_values()
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set(xlabel="layers", ylabel=f"points above {reference}", title=title)
    low, high = axis.get_ylim()
    axis.set_ylim(low - height * (high - low), high)  # the crosses below all lines
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


def _steps(axis: Axes) -> None:
    axis.set_xlabel("optimiser step")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


BIN = 0.05  # width of a bar of the histograms of curvature


@styled
def leaderboard_figure(board: "Leaderboard", pairs: pd.DataFrame) -> Figure:
    """Mean ranks with the critical difference, and pairs by the shape of the graph."""
    figure = Figure(figsize=(10, 3.5 if pairs.empty else 7), layout="constrained")
    measures = {
        "mean_delta": "mean Gromov delta",
        "homophily": "homophily (share of edges within a class)",
    }
    rows: list[Any] = [["rank", "rank"], *([] if pairs.empty else [list(measures)])]
    places = figure.subplot_mosaic(rows)
    _draw_ranks(places["rank"], board)
    if not pairs.empty:
        for measure, label in measures.items():
            _draw_pairs(places[measure], pairs, measure, label)
        legend_below(figure, places["mean_delta"], size=8)
    return figure


def groups(board: "Leaderboard") -> list[tuple[int, int]]:
    """First and last of the longest runs of models within the critical difference, by rank."""
    ranks = board.mean_ranks.to_numpy()
    reach = [int(np.searchsorted(ranks, r + board.critical_difference, "right")) - 1 for r in ranks]
    runs = [(i, end) for i, end in enumerate(reach) if end > i]
    return [pair for i, pair in enumerate(runs) if i == 0 or pair[1] > runs[i - 1][1]]


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
    words = "bars join models without a significant difference, 5 %"
    axis.set(xlabel=f"mean rank over {number} datasets ({words})", title=board.title)
    axis.grid(axis="y", visible=False)
    axis.grid(axis="x")


def _draw_pairs(axis: Axes, pairs: pd.DataFrame, measure: str, label: str) -> None:
    axis.axhline(0, color=MUTED, linewidth=0.8)
    styles = looks(pairs["curved"])
    for names, points in pairs.dropna(subset=measure).groupby(["curved", "flat"], sort=False):
        options: Any = {**styles[str(names[0])], "linestyle": "", "elinewidth": 1}
        name = " minus ".join(map(str, names))
        axis.errorbar(
            points[measure], points["difference"], points["pm"].fillna(0), label=name, **options
        )
    axis.set(xlabel=label, ylabel="curved minus flat")


@styled
def grid_figure(cells: pd.DataFrame, x: str, y: str, title: str) -> Figure:
    """A map of `cells_of` studies: colours are differences from flat, frames those found."""
    table = cells.pivot(index="row", columns="column", values="difference")
    rows = list(table.index)
    columns = list(table.columns)
    size = max(1.6 + 1.15 * len(columns), 5.5), max(1.4 + 0.8 * len(rows), 2.7)
    figure, (axis,) = panels(1, *size, title)
    most = max(float(cells["difference"].abs().max()), 1e-9)
    # purple and orange: distinguishable for colour-blind readers, white in the middle
    norm = TwoSlopeNorm(0.0, -most, most)
    numbers = table.to_numpy(dtype=float)
    drawn = axis.imshow(numbers, cmap="PuOr", norm=norm, aspect="auto", origin="lower")
    cell: Any
    for cell in cells.itertuples():
        place = columns.index(cell.column), rows.index(cell.row)
        pm = f" ± {cell.pm:.1f}" if isfinite(cell.pm) else ""
        text = f"{cell.difference:+.1f}{pm}\n{cell.space}"
        color = "white" if abs(cell.difference) > 0.7 * most else INK
        axis.text(*place, text, ha="center", va="center", fontsize=8, color=color)
        if cell.found:
            corner = place[0] - 0.47, place[1] - 0.46
            frame = Rectangle(corner, 0.94, 0.92, fill=False, edgecolor=INK, linewidth=1.6)
            axis.add_patch(frame)
    axis.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axis.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    axis.set(xlabel=key_name(x), ylabel=key_name(y))
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    color_bar(figure, drawn, axis, "points above flat")
    return figure


@styled
def curvature_figure(curvatures: Mapping[str, tuple[np.ndarray, float]]) -> Figure:
    """Histograms of sectional curvature `[triples]` and means, on a common axis."""
    columns = 1 if len(curvatures) <= 4 else 3
    title = "Sectional curvature of triples"
    figure, axes = panels(len(curvatures), 4 + 3 / columns, 1.6, title, columns, sharex=True)
    everything = np.concatenate([values for values, _ in curvatures.values()])
    low = np.floor(everything.min() / BIN)
    high = np.ceil(everything.max() / BIN)
    bins = np.arange(low, high + 1.5) * BIN  # 0 is an edge
    colors = np.where(bins[:-1] < -BIN / 2, NEGATIVE, POSITIVE)
    for i, (axis, (label, (values, mean))) in enumerate(zip(axes, curvatures.items(), strict=True)):
        share = np.histogram(values, bins)[0] / len(values)
        axis.bar(bins[:-1], share, BIN * 0.9, align="edge", color=colors)
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

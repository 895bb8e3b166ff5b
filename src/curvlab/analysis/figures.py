"""Figures of lines: curves of runs, and numbers of tables against what a sweep varies."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curvlab.analysis.style import (
    INK,
    MUTED,
    key_name,
    legend_below,
    looks,
    metric_name,
    panels,
    styled,
)
from curvlab.errors import UsageError
from curvlab.statistics import student

MOST_CURVATURES = 48
NAMED_CURVATURES = 4


@styled
def curves_figure(metrics: pd.DataFrame, title: str) -> Figure:
    """Metrics and every curvature of `metrics.csv` against the step, one axis below the other."""
    metrics = metrics.dropna(axis=1, how="all")
    columns = list(map(str, metrics.columns))
    scores = [n for n in columns if n.startswith("val/") and not n.startswith("val/routing_")]
    fractions = bool(scores) and metrics[scores[0]].max() <= 1
    if fractions:  # ranks have another scale
        scores = [name for name in scores if metrics[name].max() <= 1]
    scores = list(map(str, metrics[scores].T.drop_duplicates().index))
    kappas = [name for name in columns if name.startswith("kappa/")][:MOST_CURVATURES]
    kinds = {"map": ["map"], "loss": ["loss"] if scores else [], "val": scores, "kappa": kappas}
    drawn = {kind: names for kind, names in kinds.items() if names and names[0] in metrics}
    if "step" not in metrics or not drawn:
        raise UsageError(
            "the curves have no column step with map, val/... or kappa/...: nothing to draw."
        )
    figure, axes = panels(len(drawn), 7, 2.3, title, sharex=True)
    table = metrics.set_index("step")
    for axis, (kind, names) in zip(axes, drawn.items(), strict=True):
        for name, look in looks(names).items():
            label = metric_name(name.removeprefix("val/")).removeprefix("curvature κ of ")
            _line(axis, table[name].dropna(), {**look, "marker": "o"}, label, [-1])
        first, digits = table[names[0]].dropna(), 4 if fractions else 2
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
    line, alike = "name", ["model", "dataset", "seed"]
    figure, (axis,) = panels(1, 7, 4.3)
    if runs["model"].ne("").all() and not runs.duplicated(alike).any():
        line, datasets = "line", list(runs["dataset"].unique())
        several = " on " + curves["dataset"] if len(datasets) > 1 else ""
        curves = curves.assign(line=curves["model"] + several)
        seeds = sorted(set(runs["seed"]), key=str)
        count = "seed" if len(seeds) == 1 else f"{len(seeds)} seeds, mean and 95% interval:"
        title = f"{', '.join(datasets)}, {count} {', '.join(map(str, seeds))}"
        axis.set_title(title, fontsize=11)
    spread = curves.groupby([line, "step"])["value"].agg(["mean", "sem", "size"])
    lines = {}
    for name in curves[line].unique():
        own = spread.loc[name]
        lines[name] = own[own["size"] == own["size"].max()]  # steps that all its runs have
    order = sorted(lines, key=lambda name: lines[name]["mean"].iloc[-1], reverse=True)
    for name, look in looks(order).items():
        mean, steps = lines[name]["mean"], lines[name].index.to_numpy(float)
        label = f"{name}: {mean.iloc[-1]:.4g}"
        _line(axis, mean, look, label, max(1, len(mean) // 12))
        pm = (lines[name]["sem"] * student(lines[name]["size"] - 1)).fillna(0)
        axis.fill_between(steps, mean - pm, mean + pm, color=look["color"], alpha=0.15, linewidth=0)
    _steps(axis)
    axis.set_ylabel(metric_name(metric))
    legend_below(figure, axis)
    return figure


@styled
def scaling_figure(costs: Mapping[str, Mapping[str, pd.Series]], key: str) -> Figure:
    """Costs by size of each panel's methods, both logarithmic; slopes by least squares."""
    drawn = {title: lines for title, lines in costs.items() if any(map(len, lines.values()))}
    if not drawn:
        raise UsageError("no finished run has a number of this table: nothing to draw")
    figure, axes = panels(len(drawn), 7, 2.8, sharex=True)
    for axis, (title, lines) in zip(axes, drawn.items(), strict=True):
        axis.set(xscale="log", yscale="log", title=title)
        for label, look in looks(lines).items():
            values = lines[label]
            slope = ""
            if len(values) > 1:
                sizes = np.log(values.index.to_numpy(float))
                slope = f" (slope {np.polyfit(sizes, np.log(values.to_numpy(float)), 1)[0]:.2f})"
            if len(values):
                _line(axis, values, look, label + slope)
        axis.legend()
    axes[-1].set_xlabel(key_name(key))
    return figure


@styled
def depth_figure(
    title: str,
    lines: Mapping[str, "pd.Series[float]"],
    reference: str,
    diverged: Mapping[str, Sequence[float]],
) -> Figure:
    """Scores less those of a reference of the same depth; crosses where runs `diverged`."""
    gaps = {k: (scores - lines[reference]).dropna() for k, scores in lines.items()}
    del gaps[reference]
    if not any(map(len, gaps.values())):
        raise UsageError(f"no depth has a number of {reference} and of another: nothing to draw")
    figure, (axis,) = panels(1, 7, 4.3)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    height = 0.03
    for label, look in looks(gaps).items():
        if len(gaps[label]):
            _line(axis, gaps[label], look, label)
        if len(ended := diverged.get(label, ())):
            across = axis.get_xaxis_transform()  # the height is a share of the axis
            heights = [height] * len(ended)
            crosses = axis.plot(ended, heights, "x", color=look["color"], transform=across)
            crosses[0].set_gid(f"not finite: {label}")
            place: dict[str, Any] = {"fontsize": 7, "color": look["color"], "va": "center"}
            axis.text(0.01, height, label, transform=axis.transAxes, **place)
            height += 0.05
    if height > 0.03:
        axis.plot([], [], "x", color=INK, label="not finite")
    depths = (*(gap.index for gap in gaps.values()), *diverged.values())
    ticks = sorted({float(depth) for some in depths for depth in some})
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set(xlabel="layers", ylabel=f"points above {reference}", title=title)
    low, high = axis.get_ylim()
    axis.set_ylim(low - height * (high - low), high)  # the crosses below all lines
    legend_below(figure, axis)
    return figure


def _line(
    axis: Axes, values: "pd.Series[float]", look: dict[str, str], label: str, every: Any = 1
) -> None:
    """Draw values against their index, with a marker at each `every`-th point."""
    x, y = values.index.to_numpy(float), values.to_numpy(float)
    options: dict[str, Any] = {**look, "markevery": every, "label": label}
    axis.plot(x, y, **options)


def _steps(axis: Axes) -> None:
    axis.set_xlabel("optimiser step")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

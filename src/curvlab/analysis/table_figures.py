"""Figures of tables: costs and scores against what a sweep varies."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from curvlab.analysis.style import INK, MUTED, legend_below, looks, tidy
from curvlab.analysis.words import key_words
from curvlab.errors import UsageError


def scaling_figure(panels: Mapping[str, Mapping[str, pd.Series]], x_label: str) -> Figure:
    """Costs against a size, both logarithmic, one panel below the other; slopes by least squares.

    Args:
        panels: For each panel's title, each method's cost by size (the index).
        x_label: The key of the configuration that is the size.

    Raises:
        UsageError: There is nothing to draw.
    """
    panels = {title: lines for title, lines in panels.items() if any(map(len, lines.values()))}
    if not panels:
        raise UsageError("no finished run has a number of this table: nothing to draw")
    figure = Figure(figsize=(7, 0.7 + 2.8 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        tidy(axis)
        look = looks(lines)
        for label, costs in lines.items():
            if len(costs):
                color, dash, marker = look[label]
                axis.loglog(
                    costs.index.to_numpy(float),
                    costs.to_numpy(float),
                    marker=marker,
                    markersize=4,
                    color=color,
                    linestyle=dash,
                    label=label + _slope(costs),
                )
        axis.set_title(title, loc="left", fontsize=10)
        axis.legend(frameon=False, fontsize=9)
    axes[-1].set_xlabel(key_words(x_label))
    return figure


def depth_figure(
    title: str,
    lines: Mapping[str, "pd.Series[float]"],
    reference: str,
    diverged: Mapping[str, Sequence[float]],
) -> Figure:
    """Scores less those of a reference of the same depth, against the number of layers.

    Args:
        title: Heading.
        lines: Each method's score by number of layers (the index), the reference's among them;
            depths without a number of both are left out.
        reference: Which of the lines the others are compared with.
        diverged: Each method's depths at which runs ended with numbers that are not finite:
            crosses along the bottom.

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
    figure = Figure(figsize=(7, 4.8), layout="constrained")
    axis = figure.subplots()
    tidy(axis)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    across = axis.get_xaxis_transform()  # of what stands at a depth and at no score
    height = 0.03
    look = looks(gaps)
    for label, gap in gaps.items():
        color, dash, marker = look[label]
        if len(gap):
            axis.plot(
                gap.index.to_numpy(float),
                gap.to_numpy(float),
                color=color,
                linestyle=dash,
                marker=marker,
                markersize=4,
                label=label,
            )
        if len(ended := diverged.get(label, ())):
            crosses = axis.plot(ended, [height] * len(ended), "x", color=color, transform=across)
            crosses[0].set_gid(f"not finite: {label}")
            axis.text(
                0.01, height, label, fontsize=7, color=color, va="center", transform=axis.transAxes
            )
            height += 0.05
    if any(map(len, diverged.values())):
        axis.plot([], [], "x", color=INK, label="not finite")
    drawn = (*(gap.index for gap in gaps.values()), *diverged.values())
    ticks = sorted({float(depth) for depths in drawn for depth in depths})
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xlabel("layers")
    axis.set_ylabel(f"points above {reference}")
    axis.set_title(title, loc="left", fontsize=10)
    low, high = axis.get_ylim()
    axis.set_ylim(low - height * (high - low), high)  # the crosses below all lines
    legend_below(figure, axis)
    return figure


def _slope(costs: "pd.Series[float]") -> str:
    """Words for the slope of the logarithms; none for a single size."""
    if len(costs) < 2:
        return ""
    slope = np.polyfit(np.log(costs.index.to_numpy(float)), np.log(costs.to_numpy(float)), 1)[0]
    return f" (slope {slope:.2f})"

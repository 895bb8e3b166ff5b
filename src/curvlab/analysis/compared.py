"""One picture of several runs: every score, means with intervals, and what they cost."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from curvlab.analysis.style import INK, LINES, MUTED, tidy
from curvlab.tables.paired import Group


def compared_figure(groups: Sequence[Group], table: pd.DataFrame, title: str) -> Figure:
    """Scores of each group beside its mean and 95 % interval; time and memory beside them.

    Args:
        groups: runs that differ in their seed alone.
        table: what `curvlab.tables.paired.comparison` says of them.
        title: heading.
    """
    figure = Figure(figsize=(10, 1.6 + 0.45 * len(groups)), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 1, 1))
    rows = np.arange(len(groups))[::-1]
    for axis in axes:
        tidy(axis)
        axis.grid(axis="y", visible=False)
        axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    for place, group in zip(rows, groups, strict=True):
        scores = list(group.scores.values())
        axes[0].plot(scores, np.full(len(scores), place), "o", color=MUTED, ms=4, alpha=0.6)
    mean = table["mean"].to_numpy()
    pm = np.nan_to_num((table["high"] - table["mean"]).to_numpy())
    axes[0].errorbar(
        mean, rows, xerr=pm, fmt="D", color=LINES[0], ecolor=INK, capsize=4, markersize=6
    )
    axes[0].set_title("score: runs, mean, 95 % interval", loc="left", fontsize=10)
    axes[0].set_yticks(rows, [group.label for group in groups])
    axes[0].set_ylim(-0.6, len(groups) - 0.4)
    for axis, name, heading in zip(
        axes[1:], ("seconds", "memory_mb"), ("seconds a run", "peak memory, MB"), strict=True
    ):
        axis.barh(rows, table[name].to_numpy(), height=0.5, color=LINES[0], alpha=0.7)
        axis.set_title(heading, loc="left", fontsize=10)
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    return figure

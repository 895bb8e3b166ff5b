"""Figures of many runs or graphs: leaderboards, maps of studies, histograms."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

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
    panels,
    styled,
)
from curvlab.tables.boards import Leaderboard

BIN = 0.05
"""Width of a bar of the histograms of curvature."""


@styled
def leaderboard_figure(board: Leaderboard, pairs: pd.DataFrame) -> Figure:
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


def groups(board: Leaderboard) -> list[tuple[int, int]]:
    """First and last of the longest runs of models within the critical difference, by rank."""
    ranks = board.mean_ranks.to_numpy()
    reach = [int(np.searchsorted(ranks, r + board.critical_difference, "right")) - 1 for r in ranks]
    found = [(i, end) for i, end in enumerate(reach) if end > i]
    return [pair for i, pair in enumerate(found) if i == 0 or pair[1] > found[i - 1][1]]


def _draw_ranks(axis: Axes, board: Leaderboard) -> None:
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
    look = looks(pairs["curved"])
    for names, own in pairs.dropna(subset=measure).groupby(["curved", "flat"], sort=False):
        options: Any = {**look[str(names[0])], "linestyle": "", "elinewidth": 1}
        name = " less ".join(map(str, names))
        axis.errorbar(own[measure], own["difference"], own["pm"].fillna(0), label=name, **options)
    axis.set(xlabel=label, ylabel="curved less flat")


@styled
def grid_figure(cells: pd.DataFrame, x: str, y: str, title: str) -> Figure:
    """A map of `cells_of` studies: colours are differences from flat, frames those found."""
    table = cells.pivot(index="row", columns="column", values="difference")
    rows, columns = list(table.index), list(table.columns)
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
    low, high = np.floor(everything.min() / BIN), np.ceil(everything.max() / BIN)
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

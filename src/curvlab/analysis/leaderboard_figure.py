"""A leaderboard as a picture: critical differences, cost, and where curvature pays."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from curvlab.analysis.style import INK, MUTED, Look, looks, tidy
from curvlab.tables.leaderboard import Leaderboard
from curvlab.tables.spec import Better
from curvlab.tables.twins import Twins

NAME_HEIGHT = 0.07
"""Of a point's name, as a share of the range of scores."""


def leaderboard_figure(board: Leaderboard, pairs: Sequence[Twins] = ()) -> Figure:
    """Mean ranks with the critical difference; mean score by parameters and by time; twins.

    Args:
        board: The models' ranks.
        pairs: Curved models less their flat twins, against delta and homophily where known.
    """
    figure = Figure(figsize=(10, 9 if pairs else 6), layout="constrained")
    rows: list[Any] = [["rank", "rank"], ["parameters", "seconds"]]
    places = figure.subplot_mosaic(rows + ([["delta", "homophily"]] if pairs else []))
    _ranks(places["rank"], board)
    scores = board.scores.mean(axis=1)
    for what, label in (("parameters", "parameters"), ("seconds", "seconds a run")):
        _cost(places[what], board.cost[what], scores, label, board.better)
    if pairs:
        look = looks(pair.curved for pair in pairs)
        colors = {(pair.curved, pair.flat): look[pair.curved] for pair in pairs}
        _twins(places["delta"], pairs, [p.delta for p in pairs], "mean Gromov delta", colors)
        words = "homophily (share of edges within a class)"
        _twins(places["homophily"], pairs, [p.homophily for p in pairs], words, colors)
        handles, labels = places["delta"].get_legend_handles_labels()
        if handles:
            figure.legend(
                handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False
            )
    return figure


def groups(board: Leaderboard) -> list[tuple[int, int]]:
    """First and last of the longest runs of models within the critical difference, by rank."""
    ranks = board.mean_ranks.to_numpy()
    reach = [int(np.searchsorted(ranks, r + board.critical_difference, "right")) - 1 for r in ranks]
    found = [(i, end) for i, end in enumerate(reach) if end > i]
    return [pair for i, pair in enumerate(found) if i == 0 or pair[1] > found[i - 1][1]]


def _ranks(axis: Axes, board: Leaderboard) -> None:
    ranks = board.mean_ranks
    heights = np.arange(len(ranks))
    colors = [look.color for look in looks(map(str, ranks.index)).values()]
    axis.scatter(ranks.to_numpy(), heights, c=colors, zorder=2)
    axis.set_yticks(heights, [str(name) for name in ranks.index])
    axis.invert_yaxis()
    if isfinite(board.critical_difference):
        for i, (first, last) in enumerate(groups(board)):
            right = ranks.iloc[last] + 0.15 + 0.12 * i
            axis.plot([right, right], [first, last], color=INK, linewidth=2.5)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    number = board.scores.shape[1]
    axis.set_xlabel(
        f"mean rank over {number} datasets (bars join models without a significant difference, 5 %)"
    )
    axis.set_title(board.title, loc="left", fontsize=10)


def _cost(
    axis: Axes, cost: "pd.Series[float]", scores: "pd.Series[float]", label: str, better: Better
) -> None:
    tidy(axis)
    axis.set_xscale("log")
    colors = [look.color for look in looks(map(str, scores.index)).values()]
    axis.scatter(cost.to_numpy(float), scores.to_numpy(float), c=colors, s=18, zorder=2)
    _name_points(axis, cost, scores)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.xaxis.set_minor_formatter("")
    front = pareto_front(cost, scores, better)
    axis.plot(cost[front].to_numpy(float), scores[front].to_numpy(float), "-", color=MUTED)
    axis.set_xlabel(label)
    axis.set_ylabel("mean score")
    axis.margins(0.12)


def _name_points(axis: Axes, cost: "pd.Series[float]", scores: "pd.Series[float]") -> None:
    """Names beside points, one below another where points are close."""
    reach = np.log(cost.max() / cost.min()) or 1.0, (scores.max() - scores.min()) or 1.0
    named: list[tuple[float, float]] = []
    for name in scores.sort_values(ascending=False).index:
        x, y = float(np.log(cost[name]) / reach[0]), float(scores[name] / reach[1])
        y = min([y, *(above - NAME_HEIGHT for other, above in named if abs(x - other) < 0.2)])
        named.append((x, y))
        axis.annotate(
            str(name),
            (cost[name], scores[name]),
            xytext=(5, y * reach[1]),
            textcoords=("offset points", "data"),
            va="center",
            fontsize=8,
        )


def pareto_front(cost: "pd.Series[float]", scores: "pd.Series[float]", better: Better) -> list[str]:
    """Models that no cheaper one equals, by rising cost."""
    sign = -1.0 if better is Better.lower else 1.0
    best, front = -np.inf, []
    order = sorted(cost.dropna().index, key=lambda name: (cost[name], -sign * scores[name]))
    for name in order:
        if sign * scores[name] > best:
            best = sign * scores[name]
            front.append(str(name))
    return front


def _twins(
    axis: Axes,
    pairs: Sequence[Twins],
    places: Sequence[float],
    label: str,
    colors: dict[tuple[str, str], Look],
) -> None:
    tidy(axis)
    axis.axhline(0, color=MUTED, linewidth=0.8)
    for names, look in colors.items():
        own = [
            (x, pair.difference, pair.pm if isfinite(pair.pm) else 0.0)
            for x, pair in zip(places, pairs, strict=True)
            if (pair.curved, pair.flat) == names and isfinite(x)
        ]
        if own:
            x, y, pm = zip(*own, strict=True)
            words = f"{names[0]} less {names[1]}"
            axis.errorbar(
                x,
                y,
                pm,
                fmt=look.marker,
                color=look.color,
                markersize=4,
                linewidth=1,
                label=words,
            )
    axis.set_xlabel(label)
    axis.set_ylabel("curved less flat")

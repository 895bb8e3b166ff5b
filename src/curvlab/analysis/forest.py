"""Forest plots: the published difference of two methods and ours, one line per data set."""

import json
from collections.abc import Sequence
from html import escape
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvlab.analysis.style import INK, MUTED, NEGATIVE, POSITIVE, save_figure, styled
from curvlab.statistics import CONFIRMED, CONTRADICTED, LEVEL_WORD, NOT_RUN, UNDECIDED

if TYPE_CHECKING:
    from curvlab.tables.claims import Claim, Comparison

LOOKS = {
    CONFIRMED: ("s", NEGATIVE),
    CONTRADICTED: ("X", POSITIVE),
    LEVEL_WORD: ("D", INK),
    UNDECIDED: ("o", MUTED),
}
"""Mark and colour of each verdict; the marks differ in grey print as well."""

LINE = 0.24  # inches of a line
HEAD = 0.75  # inches of a panel's title and axis
BAND = "#ececec"
FADED = "#8a8a8a"


def forest_data(claims: Sequence["Claim"]) -> str:
    """What a forest plot shows, as text: a plot with the same text is up to date."""
    rows = [
        [claim.name, one.label, one.counted, str(one.verdict)]
        + [round(x, 6) if isfinite(x) else None for x in _numbers(one)]
        for claim in claims
        for one in claim.comparisons
    ]
    return json.dumps(rows, ensure_ascii=False)


def _numbers(one: "Comparison") -> tuple[float, ...]:
    return one.published, one.pairs.mean, one.pairs.pm, one.margin


def is_current(path: Path, claims: Sequence["Claim"]) -> bool:
    """Whether a file shows today's comparisons."""
    shown = escape(forest_data(claims), quote=False)
    return path.is_file() and shown in path.read_text(encoding="utf-8")


def save_forest(claims: Sequence["Claim"], path: Path) -> Path:
    """Write the plot as SVG, with its data as its description."""
    return save_figure(forest_figure(claims), path, forest_data(claims))


@styled
def forest_figure(claims: Sequence["Claim"]) -> Figure:
    """A panel for each claim: the published difference is hollow, ours has its interval.

    The band of a line is its margin. Comparisons that do not count are grey.
    """
    heights = [LINE * len(claim.comparisons) + HEAD for claim in claims]
    figure = Figure(figsize=(9.5, sum(heights) + 0.4), layout="constrained")
    axes = figure.subplots(len(claims), 1, squeeze=False, height_ratios=heights).ravel()
    for axis, claim in zip(axes, claims, strict=True):
        _draw(axis, claim)
    figure.legend(
        handles=_legend(), loc="outside lower center", ncols=6, fontsize=8, handletextpad=0.2
    )
    return figure


def _legend() -> list[Line2D]:
    hollow: dict[str, Any] = {"color": "none", "markerfacecolor": "white", "markeredgecolor": INK}
    handles = [Line2D([], [], marker="o", markersize=9, label="published", **hollow)]
    for word, (marker, color) in LOOKS.items():
        handles.append(Line2D([], [], marker=marker, color=color, markersize=5, label=word))
    return [*handles, Line2D([], [], color=BAND, linewidth=8, label="margin")]


def _draw(axis: Axes, claim: "Claim") -> None:
    rows = claim.comparisons
    axis.axvline(0, color=INK, linewidth=0.8)
    axis.grid(axis="y", visible=False)
    for place, one in enumerate(rows):
        _draw_line(axis, place, one)
    marks = [abs(x) for one in rows for x in _numbers(one)[:2] if not isnan(x)]
    furthest = max([*marks, *(one.margin for one in rows)])
    ends = [abs(one.pairs.mean) + one.pairs.pm for one in rows if not isnan(one.pairs.pm)]
    reach = 1.1 * max(furthest, min(1.6 * furthest, max(ends, default=0.0)))
    labels = [one.label if one.counted else f"({one.label})" for one in rows]
    axis.set_yticks(range(len(rows)), labels)
    for label, one in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_color(INK if one.counted else FADED)
    axis.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-reach, reach), title=claim.claim)
    axis.tick_params(axis="y", length=0)


def _draw_line(axis: Axes, place: int, one: "Comparison") -> None:
    low = place - 0.36, 0.72
    axis.broken_barh([(-one.margin, 2 * one.margin)], low, color=BAND, zorder=0)
    word = one.verdict.word
    pairs = one.pairs
    text = INK if one.counted else FADED
    if word != NOT_RUN:
        marker, color = LOOKS[word]
        color = color if one.counted else FADED
        pm = None if isnan(pairs.pm) else pairs.pm
        axis.errorbar(
            pairs.mean, place, xerr=pm, fmt=marker, color=color, markersize=5, capsize=3, zorder=5
        )
    if not isnan(one.published):
        axis.plot(one.published, place, "o", markersize=9, mfc="white", mec=text, zorder=4)
    axis.text(
        *(1.01, place, str(one.verdict)),
        transform=axis.get_yaxis_transform(),
        va="center",
        fontsize=8,
        color=text,
    )

"""Forest plots: the published difference of two methods and ours, one line per data set."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from curvlab.analysis.style import INK, MUTED, NEGATIVE, POSITIVE, styled
from curvlab.statistics import CONFIRMED, CONTRADICTED, LEVEL_WORD, NOT_RUN, UNDECIDED

if TYPE_CHECKING:
    from curvlab.tables.claims import Claim, Comparison

STYLES = {
    CONFIRMED: ("s", NEGATIVE),
    CONTRADICTED: ("X", POSITIVE),
    LEVEL_WORD: ("D", INK),
    UNDECIDED: ("o", MUTED),
}
"""Marker and colour of each verdict; the markers are distinguishable without colours."""

LINE = 0.24  # height of a line in inches
HEAD = 0.75  # height of a panel's title and axis in inches
BAND = "#ececec"
FADED = "#8a8a8a"


@styled
def forest_figure(claims: Sequence["Claim"]) -> Figure:
    """Draw a panel for each claim: published differences are hollow, ours have intervals.

    The band behind a line is the margin. Comparisons that do not count are grey.
    """
    heights = [LINE * len(claim.comparisons) + HEAD for claim in claims]
    figure = Figure(figsize=(9.5, sum(heights) + 0.4), layout="constrained")
    axes = figure.subplots(len(claims), 1, squeeze=False, height_ratios=heights).ravel()
    for axis, claim in zip(axes, claims, strict=True):
        _draw_claim(axis, claim)
    _draw_legend(figure)
    return figure


def _draw_legend(figure: Figure) -> None:
    hollow: dict[str, Any] = {"color": "none", "mfc": "white", "mec": INK, "markersize": 9}
    handles = [Line2D([], [], marker="o", label="published", **hollow)]
    for verdict, (marker, color) in STYLES.items():
        options: dict[str, Any] = {"marker": marker, "color": color, "markersize": 5}
        handles.append(Line2D([], [], label=verdict, **options))
    handles.append(Line2D([], [], color=BAND, linewidth=8, label="margin"))
    options = {"ncols": 6, "fontsize": 8, "handletextpad": 0.2}
    figure.legend(handles=handles, loc="outside lower center", **options)


def _draw_claim(axis: Axes, claim: "Claim") -> None:
    rows = claim.comparisons
    axis.axvline(0, color=INK, linewidth=0.8)
    axis.grid(axis="y", visible=False)
    for height, comparison in enumerate(rows):
        _draw_line(axis, height, comparison)
    labels = [row.label if row.counted else f"({row.label})" for row in rows]
    axis.set_yticks(range(len(rows)), labels)
    for label, row in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_color(INK if row.counted else FADED)
    limit = _limit(rows)
    axis.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-limit, limit), title=claim.claim)
    axis.tick_params(axis="y", length=0)


def _limit(rows: Sequence["Comparison"]) -> float:
    """Limit of the axis: all differences and margins, and intervals if they are not too long."""
    sizes = [row.margin for row in rows]
    ends = [0.0]
    for row in rows:
        pairs = row.pairs
        sizes += [abs(x) for x in (row.published, pairs.mean) if not isnan(x)]
        if not isnan(pairs.pm):
            ends.append(abs(pairs.mean) + pairs.pm)
    largest = max(sizes)
    return 1.1 * max(largest, min(1.6 * largest, max(ends)))


def _draw_line(axis: Axes, height: int, comparison: "Comparison") -> None:
    margin = comparison.margin
    axis.broken_barh([(-margin, 2 * margin)], (height - 0.36, 0.72), color=BAND, zorder=0)
    verdict = comparison.verdict
    pairs = comparison.pairs
    text_color = INK if comparison.counted else FADED
    if verdict.word != NOT_RUN:
        marker, color = STYLES[verdict.word]
        options: dict[str, Any] = {"fmt": marker, "markersize": 5, "capsize": 3, "zorder": 5}
        options["color"] = color if comparison.counted else FADED
        options["xerr"] = None if isnan(pairs.pm) else pairs.pm
        axis.errorbar(pairs.mean, height, **options)
    if not isnan(comparison.published):
        hollow: dict[str, Any] = {"markersize": 9, "mfc": "white", "mec": text_color, "zorder": 4}
        axis.plot(comparison.published, height, "o", **hollow)
    side = axis.get_yaxis_transform()  # x is a share of the axis
    options = {"transform": side, "va": "center", "fontsize": 8, "color": text_color}
    axis.text(1.01, height, str(verdict), **options)

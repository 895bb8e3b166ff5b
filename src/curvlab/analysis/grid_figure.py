"""The map of a grid of studies: by how much a curved space is above the flat one."""

from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from curvlab.analysis.style import INK, MUTED

COLOURS = "PuOr"  # which the colour-blind can tell apart, white in the middle


def grid_figure(cells: pd.DataFrame, x: str, y: str, panels: str, title: str) -> Figure:
    """A square for each cell: its colour is the difference, its frame says that it was found.

    Args:
        cells: `panel`, `row`, `column`, `space`, `difference`, `pm` and `found`, see
            `curvlab.study.grid.GridCell`.
        x: what columns are.
        y: what rows are.
        panels: what panels are.
        title: heading.
    """
    values = list(dict.fromkeys(cells["panel"]))
    rows, columns = (sorted(set(cells[name])) for name in ("row", "column"))
    size = 1.6 + 1.15 * len(columns) * len(values), 1.9 + 0.8 * len(rows)
    figure = Figure(figsize=(max(size[0], 5.5), max(size[1], 3.2)), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(1, len(values), squeeze=False)[0]
    most = max(float(np.nanmax(np.abs(cells["difference"]))), 1e-9)
    norm = TwoSlopeNorm(0.0, -most, most)
    for axis, value in zip(axes, values, strict=True):
        own = cells[cells["panel"].isna() if value is None else cells["panel"] == value]
        table = own.pivot(index="row", columns="column", values="difference")
        heights = table.reindex(index=rows, columns=columns).to_numpy(dtype=float)
        drawn = axis.imshow(heights, cmap=COLOURS, norm=norm, origin="lower", aspect="auto")
        for cell in own.itertuples():
            _write(axis, cell, columns.index(cell.column), rows.index(cell.row), most)
        axis.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
        axis.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
        axis.set_xlabel(_last(x))
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        if value is not None:
            axis.set_title(f"{_last(panels)} {value}", fontsize=10, color=MUTED)
    axes[0].set_ylabel(_last(y))
    bar = figure.colorbar(drawn, ax=list(axes), shrink=0.85)
    bar.set_label("points above flat")
    bar.outline.set_visible(False)
    return figure


def _write(axis: Axes, cell: Any, x: int, y: int, most: float) -> None:
    """Difference, interval and space of a cell; a frame if the difference was found."""
    difference = float(cell.difference)
    pm = f" ± {cell.pm:.1f}" if isfinite(cell.pm) else ""
    text = f"{difference:+.1f}{pm}\n{cell.space}"
    colour = "white" if abs(difference) > 0.7 * most else INK
    axis.text(x, y, text, ha="center", va="center", fontsize=8, color=colour)
    if cell.found:
        axis.add_patch(
            Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, fill=False, edgecolor=INK, linewidth=1.6)
        )


def _last(key: str) -> str:
    return key.rpartition(".")[2].replace("_", " ")

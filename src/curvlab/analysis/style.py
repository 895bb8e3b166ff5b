"""What all figures share: colours, axes, and how they are written. No global state."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from curvlab.results.files import arriving

NEGATIVE, POSITIVE, INK, MUTED = "#2a6fbb", "#d9722e", "#222222", "#777777"
LINES = ("#2a6fbb", "#d9722e", "#2e8b57", "#b03a7c", "#7a5fc4", "#8a6d1d", "#1f9aa8", "#c0392b")
DASHES = ("solid", "dashed", "dotted", "dashdot")  # once the colours are used up
DPI = 150


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, whole or not at all, and return the path."""
    FigureCanvasAgg(figure)
    with arriving(path) as partial:
        figure.savefig(partial, format="png", dpi=DPI)
    return path


def tidy(axis: Axes) -> None:
    """Leave out what is not needed to read an axis."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=9)

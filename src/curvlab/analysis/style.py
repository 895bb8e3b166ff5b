"""What all figures share: colours, axes, and how they are written. No global state."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from curvlab.results.files import arriving

NEGATIVE, POSITIVE, INK, MUTED = "#0072b2", "#d55e00", "#222222", "#777777"
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#666666", "#5b2a5e")
"""Distinct for colour-blind readers: those of Okabe and Ito without yellow, a grey and a violet."""

DASHES = ("solid", "dashed", "dotted", "dashdot")  # once the colours are used up
MARKERS = "osD^"
DPI = 150


class Look(NamedTuple):
    """How a model is drawn in every figure."""

    color: str
    dash: str
    marker: str


FAMILIES = (
    ("FPS-T", "Fixed-Euclidean", "MLP", "Parallel transport"),
    ("Hypformer", "Fixed-Spherical", "GCN", "Tangent space"),
    ("LRN", "Fixed-Hyperbolic", "HGCN", "RotatE"),
    ("CAT", "HAT", "Space addition", "HyboNet"),
    ("TokenGT", "PolyFormer (Cheb)", "Three Euclidean branches", "HGNN"),
    ("GAT", "PolyFormer (Mono)", "CAT without a router", "Hypformer (softmax)"),
    ("Relation frequency", "Reverse lookup", "SGC", "GraphSAGE"),
    ("κ-GCN", "RotH", "DistMult", "Q-GCN"),
)
"""The models of the figures, those of one colour in a row."""

VARIANT = ", as maps"
"""Ends the label of an operator in another form, which has its colour."""


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Each label's look in a figure: a model's own colour, else one that no other label has.

    Labels of one colour differ in their dashes.
    """
    labels = list(dict.fromkeys(labels))
    colors = {
        label: color for family, color in zip(FAMILIES, LINES, strict=True) for label in family
    }
    own = {label: colors.get(label.removesuffix(VARIANT)) for label in labels}
    free = [color for color in LINES if color not in own.values()] or list(LINES)
    others = [label for label, color in own.items() if color is None]
    own |= {label: free[i % len(free)] for i, label in enumerate(others)}
    found: dict[str, Look] = {}
    for label, color in own.items():
        place = sum(look.color == color for look in found.values()) % len(DASHES)
        found[label] = Look(str(color), DASHES[place], MARKERS[place])
    return found


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure, whole or not at all: as SVG, or by another name as PNG; return the path."""
    FigureCanvasAgg(figure)
    svg = path.suffix == ".svg"
    same = mpl.rc_context({"svg.hashsalt": "curvlab"})  # names of its parts
    with arriving(path) as partial, same:
        if svg:
            figure.savefig(partial, format="svg", metadata={"Date": None})
        else:
            figure.savefig(partial, format="png", dpi=DPI)
    return path


def legend_below(figure: Figure, axis: Axes, size: float = 9) -> None:
    """The axis's legend below the figure, in as many columns as its width holds."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    letters = figure.get_figwidth() * 72 / (0.62 * size)
    columns = max(1, int(letters / (max(map(len, labels)) + 8)))
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(columns, len(labels)),
        frameon=False,
        fontsize=size,
    )


def tidy(axis: Axes) -> None:
    """Leave out what is not needed to read an axis."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=9)

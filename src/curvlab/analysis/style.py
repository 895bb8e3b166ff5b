"""Style of all figures: colours, names of metrics, files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter

from curvlab.files import atomic_path

NEGATIVE = "#0072b2"
POSITIVE = "#d55e00"
INK = "#222222"
MUTED = "#777777"
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#666666", "#5b2a5e")
"""Distinct for colour-blind readers: those of Okabe and Ito without yellow, a grey and a violet."""

DASHES = ("solid", "dashed", "dotted", "dashdot")  # once the colours are used up
MARKERS = "osD^"

styled = mpl.rc_context(
    {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 10,
        "figure.titlesize": 12,
        "grid.color": "#e6e6e6",
        "legend.fontsize": 9,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "lines.markersize": 4,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
    }
)


def panels(
    count: int, width: float, height: float, title: str = "", columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with axes of `width` by `height` inches; options are those of `Figure.subplots`."""
    rows = -(-count // columns)
    size = (width * columns, height * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, x=0.02, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for unused in axes[count:]:
        unused.remove()
    return figure, list(axes[:count])


def looks(labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """Options of a line for each label: colours in turn, then dashes and markers."""
    styles = cycler(linestyle=DASHES) + cycler(marker=MARKERS)
    return dict(zip(dict.fromkeys(labels), (styles * cycler(color=LINES))(), strict=False))


METRICS = {
    "ap": "average precision",
    "f1_macro": "macro-F1",
    "f1_micro": "micro-F1",
    "hits1": "Hits@1",
    "hits3": "Hits@3",
    "hits10": "Hits@10",
    "loss": "training loss",
    "map": "mAP (%)",
    "mrr": "MRR",
    "r2": "R²",
    "roc_auc": "ROC-AUC",
    "sse": "sum of squared errors",
}
KEYS = {"dataset.source.num_nodes": "nodes", "model.dim": "dimensions", "model.layers": "layers"}


def metric_name(column: str) -> str:
    """Readable name of a column of `metrics.csv`, such as `val/mrr` or `kappa/0/1`."""
    kind, _, name = column.partition("/")
    if kind == "kappa":
        layer, _, component = name.partition("/")
        return f"curvature κ of layer {int(layer) + 1}, head {int(component) + 1}"
    if kind == "val":
        return f"validation {metric_name(name)}"
    if column.startswith("raw_"):
        return f"raw {metric_name(column.removeprefix('raw_'))}"
    return METRICS.get(column, column.replace("_", " "))


def key_name(key: str) -> str:
    """Readable name of a configuration key: its last part if it has no other."""
    return KEYS.get(key, key.rpartition(".")[2].replace("_", " "))


def save_figure(figure: Figure, path: Path, description: str = "") -> Path:
    """Write a figure atomically, as SVG or by another suffix as PNG; return the path.

    An SVG keeps the description in its metadata.
    """
    FigureCanvasAgg(figure)
    show_names_as_written(figure)
    svg = path.suffix == ".svg"
    metadata = {"Date": None, "Description": description or None}
    options: dict[str, Any] = {"format": "svg", "metadata": metadata} if svg else {}
    with atomic_path(path) as partial, mpl.rc_context({"svg.hashsalt": "curvlab"}):
        figure.savefig(partial, **{"format": "png", "dpi": 150, **options})
    return path


def show_names_as_written(figure: Figure) -> None:
    """Take no text for a formula, such as a class called `$x_{$`, except generated tick labels."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
                continue
            for text in axis.findobj(Text):
                text.set_parse_math(text is not axis.label)


def legend_below(figure: Figure, axis: Axes, size: float = 9) -> None:
    """The axis's legend below the figure, in as many columns as its width holds."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        letters = figure.get_figwidth() * 72 / (0.62 * size)
        columns = max(1, min(int(letters / (max(map(len, labels)) + 8)), len(labels)))
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, fontsize=size, frameon=False
        )


def color_bar(figure: Figure, drawn: Any, axes: Any, label: str, **options: Any) -> Any:
    """A colour bar next to axes."""
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.02, **options)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar

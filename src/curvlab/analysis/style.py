"""Style of all figures: colours, names of metrics, files."""

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
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
"""Colours for colour-blind readers: Okabe and Ito's without yellow, a grey and a violet."""

DASHES = ("solid", "dashed", "dotted", "dashdot")  # for more lines than colours
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
    """Make a figure with `count` axes of `width` by `height` inches.

    Options are those of `Figure.subplots`.
    """
    rows = -(-count // columns)
    size = (width * columns, height * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, x=0.02, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for axis in axes[count:]:
        axis.remove()
    return figure, list(axes[:count])


def line_styles(labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """Options of a line for each label: all colours, then all with other dashes and markers."""
    dashes = cycler(linestyle=DASHES) + cycler(marker=MARKERS)
    styles = dashes * cycler(color=LINES)
    return dict(zip(dict.fromkeys(labels), styles(), strict=False))


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
    """Readable name of a configuration key, by default its last part."""
    return KEYS.get(key, key.rpartition(".")[2].replace("_", " "))


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure atomically and return the path.

    The format is SVG if the path has this suffix, else PNG. An SVG's metadata have the figure's
    hash, for `shows`.
    """
    FigureCanvasAgg(figure)
    disable_formulas(figure)
    options: dict[str, Any] = {"format": "png", "dpi": 150}
    if path.suffix == ".svg":
        metadata = {"Date": None, "Identifier": figure_hash(figure)}
        options = {"format": "svg", "dpi": 150, "metadata": metadata}
    with atomic_path(path) as partial, mpl.rc_context({"svg.hashsalt": "curvlab"}):
        figure.savefig(partial, **options)
    return path


def shows(path: Path, figure: Figure) -> bool:
    """Whether a file is an SVG of a figure with these texts and numbers."""
    return path.is_file() and figure_hash(figure) in path.read_text(encoding="utf-8")


def figure_hash(figure: Figure) -> str:
    """Hash of a figure's texts and numbers, to four digits."""
    content: list[Any] = [text.get_text() for text in figure.texts]
    for legend in figure.legends:
        content += [text.get_text() for text in legend.get_texts()]
    for axes in figure.axes:
        content += [axes.get_title(side) for side in ("left", "center", "right")]
        content += [axes.get_xlabel(), axes.get_ylabel()]
        content += [text.get_text() for text in axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
                content += [label.get_text() for label in axis.get_ticklabels()]
        content += [_texts_of(numbers) for numbers in _drawn_numbers(axes)]
    return sha256(json.dumps(content).encode()).hexdigest()


def _drawn_numbers(axes: Axes) -> Iterator[Any]:
    """Numbers of the lines, patches, collections and images of axes."""
    for line in axes.lines:
        yield line.get_xydata()
    for patch in axes.patches:
        yield patch.get_patch_transform().transform(patch.get_path().vertices)
    for collection in axes.collections:
        yield collection.get_offsets()
        for path in collection.get_paths():
            yield path.vertices
    for drawn in (*axes.collections, *axes.images):
        if drawn.get_array() is not None:
            yield drawn.get_array()


def _texts_of(numbers: Any) -> list[str]:
    filled: Any = np.ma.filled(np.ma.asarray(numbers, dtype=float), np.nan)
    return [f"{number + 0.0:.4g}" for number in filled.ravel()]


def disable_formulas(figure: Figure) -> None:
    """Draw texts such as a class called `$x_{$` unchanged; only generated ticks are formulas."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
                continue
            for text in axis.findobj(Text):
                text.set_parse_math(text is not axis.label)


def legend_below(figure: Figure, axis: Axes, size: float = 9) -> None:
    """Draw an axis's legend below the figure, in as many columns as fit.

    The figure grows if the legend would take more than half of it.
    """
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    letters = figure.get_figwidth() * 72 / (0.62 * size)
    longest = max(map(len, labels)) + 8
    columns = max(1, min(int(letters / longest), len(labels)))
    rows = -(-len(labels) // columns)
    height = figure.get_figheight()
    too_tall = rows * 1.7 * size / 72 - height / 2
    figure.set_figheight(height + max(0, too_tall))
    options: dict[str, Any] = {"ncols": columns, "fontsize": size, "frameon": False}
    figure.legend(handles, labels, loc="outside lower center", **options)


def color_bar(figure: Figure, artist: Any, axes: Any, label: str, **options: Any) -> Any:
    """Draw an artist's colour bar next to axes."""
    bar = figure.colorbar(artist, ax=axes, shrink=0.8, pad=0.02, **options)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return bar

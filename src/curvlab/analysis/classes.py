"""Scores of each class and the calibration of probabilities: files and pictures."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from curvlab.analysis.style import INK, LINES, MUTED, save_figure, tidy
from curvlab.results.files import atomic_write

CLASSES, CONFUSION, CALIBRATION = "classes.csv", "confusion.csv", "calibration.json"
BINS = 15
NUMBERED_CLASSES, NAMED_CLASSES = 12, 40
"""Up to which a confusion matrix prints its numbers, and the classes' names."""


def save_classes(
    folder: Path, probabilities: np.ndarray, labels: np.ndarray, names: Sequence[str] | None = None
) -> None:
    """Write `classes.csv`, `confusion.csv` (of one class a node) and `calibration.json`.

    Args:
        folder: of the run.
        probabilities: of classes or labels, `[nodes, classes]`.
        labels: classes `[nodes]`, or zeros and ones `[nodes, classes]`.
        names: of the classes; None for their numbers.
    """
    count = probabilities.shape[1]
    shown = list(map(str, range(count))) if names is None else list(names)
    one = labels.ndim == 1
    predicted = probabilities.argmax(1) if one else probabilities > 0.5
    figures = precision_recall_fscore_support(
        labels, predicted, labels=np.arange(count), zero_division=0
    )
    columns = dict(zip(("precision", "recall", "f1", "nodes"), figures, strict=True))
    atomic_write(folder / CLASSES, _csv(pd.DataFrame({"class": shown, **columns})))
    if one:
        confused = confusion_matrix(labels, predicted, labels=np.arange(count))
        matrix = pd.DataFrame(confused, index=pd.Index(shown, name="class"), columns=shown)
        atomic_write(folder / CONFUSION, _csv(matrix.reset_index()))
        confidence, right = probabilities.max(1), predicted == labels
    else:
        confidence, right = probabilities.ravel(), labels.ravel().astype(bool)
    calibration = reliability(confidence, right)
    atomic_write(folder / CALIBRATION, json.dumps(calibration, indent=2) + "\n")


def reliability(confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> dict[str, Any]:
    """The reliability curve and the expected calibration error.

    `ECE = sum_b n_b / n |accuracy_b - confidence_b|` over equal bins of the confidence.
    Source: Guo et al. 2017.

    Args:
        confidence: probabilities of what was predicted, `[n]`.
        right: whether it is so, `[n]`.
        bins: number of them.

    Returns:
        `ece` and `bins`: of each that is not empty `low`, `high`, `count`, `confidence` and
        `accuracy`.
    """
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.digitize(confidence, edges, right=True) - 1, 0, bins - 1)
    table = pd.DataFrame({"bin": place, "confidence": confidence.astype(float), "right": right})
    means = table.groupby("bin").agg(
        count=("right", "size"), confidence=("confidence", "mean"), accuracy=("right", "mean")
    )
    gaps = (means["accuracy"] - means["confidence"]).abs()
    used = means.index.to_numpy()
    means.insert(0, "low", edges[used])
    means.insert(1, "high", edges[used + 1])
    ece = float((gaps * means["count"]).sum() / len(table))
    return {"ece": ece, "bins": means.astype(float).to_dict("records")}


def plot_classes(folder: Path, title: str) -> list[Path]:
    """Draw the confusion matrix, if there is one, and the reliability curve of a run's folder."""
    calibration = json.loads((folder / CALIBRATION).read_text("utf-8"))
    figure = reliability_figure(calibration, title)
    paths = [save_figure(figure, folder / "plots" / "calibration.png")]
    if (folder / CONFUSION).exists():
        matrix = pd.read_csv(folder / CONFUSION, dtype={"class": str}, index_col="class")
        paths.append(save_figure(confusion_figure(matrix, title), folder / "plots/confusion.png"))
    return paths


def confusion_figure(matrix: pd.DataFrame, title: str) -> Figure:
    """Counts of test nodes by class and by prediction, coloured by the share of their class.

    Args:
        matrix: `[classes, classes]`, a row a class; names are the index.
        title: heading.
    """
    counts, names = matrix.to_numpy(), [str(name)[:16] for name in matrix.index]
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    size = float(np.clip(2.6 + 0.42 * len(names), 4, 10))
    figure = Figure(figsize=(size + 1.2, size), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axis = figure.add_subplot()
    drawn = axis.imshow(share, cmap="Blues", vmin=0, vmax=1)
    if len(names) <= NUMBERED_CLASSES:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if share[row, column] > 0.6 else INK
            axis.text(column, row, f"{count:,}", ha="center", va="center", fontsize=8, color=color)
    if len(names) <= NAMED_CLASSES:
        longest = max(map(len, names))
        axis.set_xticks(range(len(names)), names, rotation=90 if longest > 3 else 0, fontsize=8)
        axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xlabel("predicted class")
    axis.set_ylabel("class of the test node")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    bar = figure.colorbar(drawn, ax=axis, shrink=0.8, pad=0.02)
    bar.set_label("share of the class")
    bar.outline.set_visible(False)
    return figure


def reliability_figure(calibration: dict[str, Any], title: str) -> Figure:
    """Accuracy against confidence, on the diagonal if probabilities are what they say.

    Args:
        calibration: what `reliability` returned.
        title: heading.
    """
    bins = pd.DataFrame(calibration["bins"])
    figure = Figure(figsize=(5.4, 5.8), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for axis in (upper, lower):
        tidy(axis)
    ece = f"expected calibration error {calibration['ece']:.3f}; below the line: overconfident"
    upper.set_title(ece, loc="left", fontsize=9, color=MUTED)
    upper.plot((0, 1), (0, 1), color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    upper.plot(bins["confidence"], bins["accuracy"], "o-", color=LINES[0], markersize=5)
    upper.set_ylabel("share that is right")
    upper.set_ylim(-0.03, 1.03)
    width = bins["high"] - bins["low"]
    lower.bar(bins["low"], bins["count"], width * 0.95, align="edge", color=LINES[0], alpha=0.7)
    lower.set_ylabel("predictions")
    lower.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    lower.set_xlabel("probability of the predicted class")
    lower.set_xlim(0, 1)
    return figure


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, float_format="%.6g")

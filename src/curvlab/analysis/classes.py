"""Scores of each class and the calibration of probabilities, as files of a run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from curvlab.results.files import atomic_write

CLASSES, CONFUSION, CALIBRATION = "classes.csv", "confusion.csv", "calibration.json"
BINS = 15


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
    numbers = np.arange(probabilities.shape[1])
    shown = list(map(str, numbers if names is None else names))
    one = labels.ndim == 1
    predicted = probabilities.argmax(1) if one else probabilities > 0.5
    figures = precision_recall_fscore_support(labels, predicted, labels=numbers, zero_division=0)
    columns = dict(zip(("precision", "recall", "f1", "nodes"), figures, strict=True))
    tables = {CLASSES: pd.DataFrame({"class": shown, **columns})}
    if one:
        confused = pd.DataFrame(confusion_matrix(labels, predicted, labels=numbers), columns=shown)
        confused.insert(0, "class", shown, allow_duplicates=True)
        tables[CONFUSION] = confused
        confidence, right = probabilities.max(1), predicted == labels
    else:
        confidence, right = probabilities.ravel(), labels.ravel().astype(bool)
    for name, table in tables.items():
        atomic_write(folder / name, table.to_csv(index=False, float_format="%.6g"))
    calibration = reliability(confidence, right)
    atomic_write(folder / CALIBRATION, json.dumps(calibration, indent=2) + "\n")


def reliability(confidence: np.ndarray, right: np.ndarray, bins: int = BINS) -> dict[str, Any]:
    """The reliability curve and the expected calibration error.

    `ECE = sum_b n_b / n |accuracy_b - confidence_b|` over equal bins of the confidence.
    Source: Guo et al. 2017.

    Args:
        confidence: probabilities of the predictions, `[n]`.
        right: whether they are right, `[n]`.
        bins: number of them.

    Returns:
        `ece` and `bins`: of each that is not empty `low`, `high`, `count`, `confidence` and
        `accuracy`.
    """
    edges = np.linspace(0, 1, bins + 1)
    place = np.clip(np.digitize(confidence, edges, right=True) - 1, 0, bins - 1)
    table = pd.DataFrame({"low": edges[place], "high": edges[place + 1]})
    table = table.assign(confidence=confidence.astype(float), right=right)
    means = table.groupby(["low", "high"], as_index=False).agg(
        count=("right", "size"), confidence=("confidence", "mean"), accuracy=("right", "mean")
    )
    gaps = (means["accuracy"] - means["confidence"]).abs()
    ece = float((gaps * means["count"]).sum() / len(table))
    return {"ece": ece, "bins": means.astype(float).to_dict("records")}

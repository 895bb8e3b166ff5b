"""Scores of each class, as files of a run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from curvlab.files import atomic_write


def save_classes(
    folder: Path, probabilities: np.ndarray, labels: np.ndarray, names: Sequence[str] | None = None
) -> None:
    """Write `classes.csv` and, if a node has one class, `confusion.csv`.

    Args:
        folder: The run's folder.
        probabilities: `[nodes, classes]`.
        labels: Classes `[nodes]`, or whether a node has a class, `[nodes, classes]`.
        names: Names of the classes; None: numbers.
    """
    numbers = np.arange(probabilities.shape[1])
    classes = list(map(str, numbers if names is None else names))
    has_one_class = labels.ndim == 1
    predictions = probabilities.argmax(1) if has_one_class else probabilities > 0.5
    scores = precision_recall_fscore_support(labels, predictions, labels=numbers, zero_division=0)
    columns = dict(zip(("precision", "recall", "f1", "nodes"), scores, strict=True))
    tables = {"classes.csv": pd.DataFrame({"class": classes, **columns})}
    if has_one_class:
        counts = confusion_matrix(labels, predictions, labels=numbers)
        confusion = pd.DataFrame(counts, columns=classes)
        confusion.insert(0, "class", classes, allow_duplicates=True)
        tables["confusion.csv"] = confusion
    for name, table in tables.items():
        atomic_write(folder / name, table.to_csv(index=False, float_format="%.6g"))

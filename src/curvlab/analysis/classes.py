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
    """Write `classes.csv` and, of labels `[nodes]` not `[nodes, classes]`, `confusion.csv`."""
    numbers = np.arange(probabilities.shape[1])
    shown = list(map(str, numbers if names is None else names))
    predicted = probabilities.argmax(1) if labels.ndim == 1 else probabilities > 0.5
    figures = precision_recall_fscore_support(labels, predicted, labels=numbers, zero_division=0)
    columns = dict(zip(("precision", "recall", "f1", "nodes"), figures, strict=True))
    tables = {"classes.csv": pd.DataFrame({"class": shown, **columns})}
    if labels.ndim == 1:
        confused = pd.DataFrame(confusion_matrix(labels, predicted, labels=numbers), columns=shown)
        confused.insert(0, "class", shown, allow_duplicates=True)
        tables["confusion.csv"] = confused
    for name, table in tables.items():
        atomic_write(folder / name, table.to_csv(index=False, float_format="%.6g"))

"""Metrics of classes and calibration agree with torchmetrics; files say what pictures show."""

import json

import matplotlib.image as mpimg
import numpy as np
import pandas as pd
import pytest
import torch
from torchmetrics.functional.classification import (
    multiclass_calibration_error,
    multiclass_confusion_matrix,
    multiclass_f1_score,
)

from curvlab.analysis.classes import reliability, save_classes
from curvlab.analysis.plots import plot_run


def predicted(nodes=400, classes=4):
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(nodes, classes, generator=generator)
    labels = torch.randint(classes, (nodes,), generator=generator)
    labels = torch.where(torch.rand(nodes, generator=generator) < 0.6, logits.argmax(1), labels)
    return logits.softmax(1), labels


def test_files_agree_with_torchmetrics(tmp_path):
    probabilities, labels = predicted()
    save_classes(tmp_path, probabilities.numpy(), labels.numpy(), ["a", "b", "c", "d"])
    table = pd.read_csv(tmp_path / "classes.csv")
    assert table["class"].tolist() == ["a", "b", "c", "d"]
    expected = multiclass_f1_score(probabilities, labels, 4, average="none")
    np.testing.assert_allclose(table["f1"], expected, atol=1e-5)
    matrix = pd.read_csv(tmp_path / "confusion.csv", index_col="class")
    of_library = multiclass_confusion_matrix(probabilities, labels, 4).numpy()
    np.testing.assert_array_equal(matrix.to_numpy(), of_library)
    assert table["nodes"].tolist() == of_library.sum(1).tolist()
    calibration = json.loads((tmp_path / "calibration.json").read_text())
    ece = multiclass_calibration_error(probabilities, labels, 4, n_bins=15, norm="l1")
    assert calibration["ece"] == pytest.approx(float(ece), abs=1e-6)
    assert sum(row["count"] for row in calibration["bins"]) == len(labels)
    (tmp_path / "metrics.csv").write_text("step,map\n1,0.5\n")
    paths = plot_run(tmp_path)[1:]
    assert [path.name for path in paths] == ["calibration.png", "confusion.png"]
    assert all(mpimg.imread(path).std() > 0.01 for path in paths)


def test_labels_of_which_a_node_has_several_have_no_confusion_matrix(tmp_path):
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.rand(200, 3, generator=generator)
    labels = (torch.rand(200, 3, generator=generator) < probabilities).long()
    save_classes(tmp_path, probabilities.numpy(), labels.numpy())
    assert not (tmp_path / "confusion.csv").exists()
    table = pd.read_csv(tmp_path / "classes.csv")
    both = (labels.bool() & (probabilities > 0.5)).sum(0)
    np.testing.assert_allclose(table["recall"], both / labels.sum(0), atol=1e-5)


@pytest.mark.parametrize("confidence", [0.0, 0.5, 1.0])
def test_probabilities_that_are_what_they_say_have_no_error(confidence):
    right = np.arange(100) < 100 * confidence
    assert reliability(np.full(100, confidence), right)["ece"] == pytest.approx(0)
    wrong = reliability(np.full(100, confidence), ~right)["ece"]
    assert wrong == pytest.approx(abs(1 - 2 * confidence))

"""Metrics of classes agree with torchmetrics."""

import numpy as np
import pandas as pd
import torch
from torchmetrics.functional.classification import multiclass_confusion_matrix, multiclass_f1_score

from curvlab.analysis.classes import save_classes


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


def test_labels_of_which_a_node_has_several_have_no_confusion_matrix(tmp_path):
    probabilities = torch.rand(200, 3)
    labels = (torch.rand(200, 3) < probabilities).long()
    save_classes(tmp_path, probabilities.numpy(), labels.numpy())
    assert not (tmp_path / "confusion.csv").exists()
    table = pd.read_csv(tmp_path / "classes.csv")
    both = (labels.bool() & (probabilities > 0.5)).sum(0)
    np.testing.assert_allclose(table["recall"], both / labels.sum(0), atol=1e-5)

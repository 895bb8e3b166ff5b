"""Scores of OGB's tables against OGB's evaluator, torchmetrics and scikit-learn."""

import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from curvlab.errors import UsageError
from curvlab.metrics.ogb import ogb_accuracy, ogb_roc_auc
from curvlab.tasks.labels import kind_of_labels

NODES = 80


@pytest.fixture
def evaluator(monkeypatch):
    monkeypatch.setitem(sys.modules, "outdated", None)  # which asks the package index
    from ogb.nodeproppred import Evaluator

    return Evaluator


def draws(*shape):
    return torch.randn(NODES, *shape, generator=torch.Generator().manual_seed(0))


def several(count):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(2, (NODES, count), generator=generator)


def test_roc_auc_is_the_evaluators(evaluator):
    logits, y = draws(112), several(112)
    expected = evaluator("ogbn-proteins").eval({"y_true": y, "y_pred": logits})["rocauc"]
    assert ogb_roc_auc(logits, y).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["ogbn-arxiv", "ogbn-products", "ogbn-papers100M"])
def test_accuracy_is_the_evaluators(evaluator, name):
    logits, y = draws(5), several(1)[:, 0]
    y_pred = logits.argmax(1, keepdim=True)
    expected = evaluator(name).eval({"y_true": y[:, None], "y_pred": y_pred})["acc"]
    assert ogb_accuracy(logits, y).item() == pytest.approx(expected, rel=1e-6)


def test_missing_labels_do_not_count():
    logits, y = draws(3), several(3).float()
    y[::3, 0] = torch.nan
    y[5:, 1] = torch.nan
    y[:, 2] = 1  # no curve
    y[:2, 1] = torch.tensor([0.0, 1.0])
    expected = [roc_auc_score(y[~(gone := y[:, i].isnan()), i], logits[~gone, i]) for i in (0, 1)]
    assert ogb_roc_auc(logits, y).item() == pytest.approx(np.mean(expected), rel=1e-6)
    classes = y[:, 0]
    there = ~classes.isnan()
    right = (logits.argmax(1) == classes)[there].double().mean()
    assert ogb_accuracy(logits, classes).item() == pytest.approx(right.item(), rel=1e-6)


def test_large_logits_are_not_equal():
    y = torch.tensor([[0], [1], [0], [1]])
    logits = torch.tensor([[98.0], [99.0], [97.0], [100.0]])
    assert ogb_roc_auc(logits, y).item() == 1


def test_half_precision_is_scored():
    y = several(3)
    logits = draws(3).bfloat16()
    assert ogb_roc_auc(logits, y) == ogb_roc_auc(logits.float(), y)
    assert ogb_accuracy(logits, y[:, 0]) == ogb_accuracy(logits.float(), y[:, 0])


def test_no_curve_at_all_is_an_error_of_the_split():
    with pytest.raises(UsageError, match="choose another split"):
        ogb_roc_auc(draws(2), torch.ones(NODES, 2))


def test_it_is_only_computed_where_it_is_asked_for():
    assert "ogb_acc" not in kind_of_labels(5, False, "accuracy").metrics
    assert "ogb_rocauc" not in kind_of_labels(5, True, "f1_micro").metrics
    with pytest.raises(UsageError, match=r"5 classes is scored by accuracy.*ogb_acc"):
        kind_of_labels(5, False, "ogb_rocauc")
    with pytest.raises(UsageError, match=r"several labels per node is scored by .*ogb_rocauc"):
        kind_of_labels(5, True, "ogb_acc")

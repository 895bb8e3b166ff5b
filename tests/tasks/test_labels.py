"""Metrics of classes and labels against scikit-learn's and OGB's; losses by their definitions."""

import sys

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from curvlab.errors import UsageError
from curvlab.tasks.labels import make_labels
from modes import LargestTensor

NODES = 80


def logits_of(count):
    return torch.randn(NODES, count, generator=torch.Generator().manual_seed(0))


def labels_of(high, *shape):
    return torch.randint(high, (NODES, *shape), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("classes", "dtype", "names"),
    [
        (5, torch.int64, "accuracy f1_micro f1_macro"),
        (1, torch.int64, "accuracy f1_micro f1_macro f1_binary roc_auc"),
        (3, torch.int64, "f1_micro f1_macro roc_auc"),  # of labels
        (3, torch.float32, "f1_micro f1_macro roc_auc"),
    ],
)
def test_scores_are_scikit_learns_and_losses_cross_entropies(classes, dtype, names):
    kind = make_labels(classes, multi_label=classes == 3, metric="f1_micro")
    logits = logits_of(classes).round(decimals=1)  # with ties
    y = {5: labels_of(4), 1: labels_of(2), 3: labels_of(2, 3)}[classes]  # the fifth is predicted
    one = logits.squeeze(1)
    predicted = logits.argmax(1) if classes == 5 else (one > 0).long()
    score = {
        "accuracy": lambda: accuracy_score(y, predicted),
        "f1_micro": lambda: f1_score(y, predicted, average="micro"),
        "f1_macro": lambda: f1_score(y, predicted, average="macro"),
        "f1_binary": lambda: f1_score(y, predicted),
        "roc_auc": lambda: roc_auc_score(y, one),
    }
    expected = {name: 100 * score[name]() for name in names.split()}
    assert kind.scores(logits, y.to(dtype)) == pytest.approx(expected, rel=1e-5)
    if classes == 5:
        right = logits.softmax(1)[torch.arange(NODES), y]
    else:
        right = torch.where(y == 1, one, -one).sigmoid()
    torch.testing.assert_close(kind.loss(logits, y.to(dtype)), -right.log().mean())


def test_macro_f1_leaves_out_classes_that_are_neither_there_nor_predicted():
    kind = make_labels(4, multi_label=False, metric="accuracy")
    y = torch.tensor([0, 1, 1, 0])
    logits = torch.eye(4)[[0, 1, 0, 0]]
    expected = 100 * f1_score(y, [0, 1, 0, 0], average="macro")
    assert kind.score("f1_macro", logits, y).item() == pytest.approx(expected, rel=1e-6)


def test_scores_make_no_table_of_nodes_by_pairs_of_classes():
    kind = make_labels(50, multi_label=False)
    logits = torch.randn(1000, 50, generator=torch.Generator().manual_seed(0))
    torch.use_deterministic_algorithms(mode=True)
    try:
        with LargestTensor() as watched:
            kind.scores(logits, torch.arange(1000) % 50)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(mode=False)
    assert watched.elements <= logits.numel()


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@pytest.mark.parametrize(
    ("classes", "multi_label", "metric"),
    [(1, False, "roc_auc"), (2, False, "roc_auc"), (4, False, "ogb_acc"), (3, True, "ogb_rocauc")],
)
def test_no_metric_is_finite_where_a_logit_is_not(classes, multi_label, metric, broken):
    """Though a sort and an `argmax` take NaN for the largest."""
    kind = make_labels(classes, multi_label, metric)
    logits, y = logits_of(classes), labels_of(2, *([classes] if multi_label else []))
    assert all(score.isfinite() for score in kind.scores(logits, y).values())
    logits[5, -1] = broken
    scores = kind.scores(logits, y)
    assert all(score.isnan() for score in scores.values())
    assert metric in scores


def test_roc_auc_leaves_out_labels_that_all_nodes_have_or_none_has():
    """As OGB's evaluator does."""
    kind = make_labels(4, multi_label=True, metric="ogb_rocauc")
    y = torch.tensor([[1, 0, 1, 0], [0, 0, 1, 1], [1, 0, 1, 1]])
    logits = torch.tensor([[2.0, 1.0, 0.0, 1.0], [1.0, 2.0, 3.0, 3.0], [3.0, 1.0, 2.0, 2.0]])
    scores = kind.scores(logits, y)
    assert scores["roc_auc"].item() == scores["ogb_rocauc"].item() == 100
    assert kind.score("roc_auc", logits[:, 1:3], y[:, 1:3]).isnan()


def test_two_logits_have_the_roc_curve_of_their_difference():
    kind = make_labels(2, multi_label=False, metric="roc_auc")
    logits, y = logits_of(2), labels_of(2)
    expected = 100 * roc_auc_score(y, logits[:, 1] - logits[:, 0])
    assert kind.score("roc_auc", logits, y).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("classes", "multi_label", "metric", "margin", "answer"),
    [
        (1, False, "f1_micro", 2.0, r"margin=2: .* set margin=None"),
        (3, True, "f1_micro", 2.0, r"margin=2: .* set margin=None"),
        (7, False, "roc_auc", None, "7 classes is scored by accuracy, f1_micro, f1_macro"),
        (3, True, "accuracy", None, "several labels per node is scored by f1_micro"),
        (7, False, "acuracy", None, "acuracy.*accuracy, f1_micro"),
    ],
)
def test_what_the_labels_do_not_have_is_refused(classes, multi_label, metric, margin, answer):
    with pytest.raises(UsageError, match=answer):
        make_labels(classes, multi_label, metric, margin)


def test_margin_loss_is_the_specifications():
    """LRN, the worked example of its layers: logits at two curvatures, margin 2."""
    kind = make_labels(2, False, "accuracy", margin=2.0)
    y = torch.tensor([0, 1])
    logits = torch.tensor([[0.019943, -0.556605], [-2.095916, -5.908870]])
    assert kind.loss(logits, y).item() == pytest.approx(2.809102, abs=1e-5)
    logits = torch.tensor([[0.041710, -0.413019], [-1.391060, -4.954458]])
    assert kind.loss(logits, y).item() == pytest.approx(2.777167, abs=1e-5)
    far = torch.tensor([[9.0, 0.0], [0.0, 9.0]])
    assert kind.loss(far, y).item() == pytest.approx(1.0)  # of the node's own class alone


@pytest.mark.parametrize(
    ("name", "metric", "columns"),
    [
        ("ogbn-proteins", "ogb_rocauc", (112,)),
        ("ogbn-arxiv", "ogb_acc", ()),
        ("ogbn-products", "ogb_acc", ()),
        ("ogbn-papers100M", "ogb_acc", ()),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_score_is_the_evaluators(monkeypatch, name, metric, columns, dtype):
    monkeypatch.setitem(sys.modules, "outdated", None)  # which asks the package index
    from ogb.nodeproppred import Evaluator

    width = columns[0] if columns else 5
    logits = torch.randn(NODES, width).to(dtype)
    y = torch.randint(2, (NODES, *columns))
    y_pred = logits.float() if columns else logits.argmax(1, keepdim=True)
    evaluated = Evaluator(name).eval({"y_true": y.view(NODES, -1), "y_pred": y_pred})
    kind = make_labels(width, bool(columns), metric)
    expected = 100 * evaluated[metric.removeprefix("ogb_")]
    assert kind.score(metric, logits, y).item() == pytest.approx(expected, rel=1e-6)


def test_large_logits_are_not_equal():
    y = torch.tensor([[0], [1], [0], [1]])
    logits = torch.tensor([[98.0], [99.0], [97.0], [100.0]])
    assert make_labels(1, True, "ogb_rocauc").score("ogb_rocauc", logits, y).item() == 100


def test_it_is_only_computed_where_it_is_asked_for():
    assert "ogb_acc" not in make_labels(5, False, "accuracy").metrics
    assert "ogb_rocauc" not in make_labels(5, True, "f1_micro").metrics
    with pytest.raises(UsageError, match=r"5 classes is scored by accuracy.*ogb_acc"):
        make_labels(5, False, "ogb_rocauc")
    with pytest.raises(UsageError, match=r"several labels per node is scored by .*ogb_rocauc"):
        make_labels(5, True, "ogb_acc")

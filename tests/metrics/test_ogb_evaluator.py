"""Scores of OGB's tables against OGB's evaluator."""

import sys

import pytest
import torch

from curvlab.errors import UsageError
from curvlab.tasks.labels import kind_of_labels

NODES = 80


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

    generator = torch.Generator().manual_seed(0)
    width = columns[0] if columns else 5
    logits = torch.randn(NODES, width, generator=generator).to(dtype)
    y = torch.randint(2, (NODES, *columns), generator=generator)
    y_pred = logits.float() if columns else logits.argmax(1, keepdim=True)
    evaluated = Evaluator(name).eval({"y_true": y.view(NODES, -1), "y_pred": y_pred})
    kind = kind_of_labels(width, bool(columns), metric)
    expected = 100 * evaluated[metric.removeprefix("ogb_")]
    assert kind.score(metric, logits, y).item() == pytest.approx(expected, rel=1e-6)


def test_large_logits_are_not_equal():
    y = torch.tensor([[0], [1], [0], [1]])
    logits = torch.tensor([[98.0], [99.0], [97.0], [100.0]])
    assert kind_of_labels(1, True, "ogb_rocauc").score("ogb_rocauc", logits, y).item() == 100


def test_it_is_only_computed_where_it_is_asked_for():
    assert "ogb_acc" not in kind_of_labels(5, False, "accuracy").metrics
    assert "ogb_rocauc" not in kind_of_labels(5, True, "f1_micro").metrics
    with pytest.raises(UsageError, match=r"5 classes is scored by accuracy.*ogb_acc"):
        kind_of_labels(5, False, "ogb_rocauc")
    with pytest.raises(UsageError, match=r"several labels per node is scored by .*ogb_rocauc"):
        kind_of_labels(5, True, "ogb_acc")

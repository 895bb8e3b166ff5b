"""Metrics of the Open Graph Benchmark, by its own evaluators (Hu et al. 2020, arXiv:2005.00687)."""

import sys
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

UPDATES = "outdated"
"""Module by which OGB asks a package index for a newer version when it is imported."""


@cache
def evaluator(kind: str, dataset: str) -> Any:
    """OGB's evaluator of a data set; OGB is imported here, and asks no package index.

    Args:
        kind: `nodeproppred` or `linkproppred`.
        dataset: OGB's name of the data set.
    """
    before = sys.modules.get(UPDATES)
    sys.modules[UPDATES] = None  # type: ignore[assignment] # so that its import fails
    try:
        module = import_module(f"ogb.{kind}")
    finally:
        del sys.modules[UPDATES]
        if before is not None:
            sys.modules[UPDATES] = before
    return module.Evaluator(dataset)


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of nodes whose largest logit `[nodes, classes]` is that of their class `[nodes]`."""
    predicted = logits.argmax(1, keepdim=True)
    return _evaluate("ogbn-arxiv", "acc", predicted, labels.unsqueeze(1))


def roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean ROC-AUC of the labels `[nodes, labels]` that have both values; NaN if none has."""
    if bool((labels.amin(0) == labels.amax(0)).all()):
        return logits.new_tensor(torch.nan)
    return _evaluate("ogbn-proteins", "rocauc", logits.float(), labels)


def _evaluate(dataset: str, metric: str, predicted: Tensor, labels: Tensor) -> Tensor:
    """The metric of a data set's evaluator, of any number of labels."""
    evaluation = evaluator("nodeproppred", dataset)
    evaluation.num_tasks = labels.shape[1]
    given = {"y_true": labels.cpu().numpy(), "y_pred": predicted.cpu().numpy()}
    score = evaluation.eval(given)[metric]
    return torch.tensor(score, dtype=torch.get_default_dtype(), device=predicted.device)

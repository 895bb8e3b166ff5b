"""Metrics of the Open Graph Benchmark, by its own evaluators (Hu et al. 2020, arXiv:2005.00687)."""

import sys
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

UPDATES = "outdated"
"""Module that OGB imports to query a package index for a newer version."""


@cache
def evaluator(kind: str, dataset: str) -> Any:
    """OGB's evaluator of a data set. The import of OGB queries no package index.

    Args:
        kind: `nodeproppred` or `linkproppred`.
        dataset: OGB's name of the data set.
    """
    updates = sys.modules.get(UPDATES)
    sys.modules[UPDATES] = None  # type: ignore[assignment] # its import fails
    try:
        module = import_module(f"ogb.{kind}")
    finally:
        del sys.modules[UPDATES]
        if updates is not None:
            sys.modules[UPDATES] = updates
    return module.Evaluator(dataset)


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of nodes whose class `[nodes]` has the largest of their logits `[nodes, classes]`."""
    prediction = logits.argmax(1, keepdim=True)
    return _evaluate("ogbn-arxiv", "acc", prediction, labels.unsqueeze(1))


def roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean ROC-AUC of the labels `[nodes, labels]` that have both values; NaN if none has."""
    is_constant = labels.amin(0) == labels.amax(0)
    if bool(is_constant.all()):
        return logits.new_tensor(torch.nan)
    return _evaluate("ogbn-proteins", "rocauc", logits.float(), labels)


def _evaluate(dataset: str, metric: str, prediction: Tensor, labels: Tensor) -> Tensor:
    """Evaluate a metric by the evaluator of a data set, for any number of labels."""
    evaluation = evaluator("nodeproppred", dataset)
    evaluation.num_tasks = labels.shape[1]
    arrays = {"y_true": labels.cpu().numpy(), "y_pred": prediction.cpu().numpy()}
    score = evaluation.eval(arrays)[metric]
    return torch.tensor(score, dtype=torch.get_default_dtype(), device=prediction.device)

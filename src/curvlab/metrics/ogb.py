"""Scores of OGB's own evaluator, which tables of its graphs are made of. It works on the host."""

import torch
from torch import Tensor

from curvlab.errors import UsageError


def ogb_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Fraction of the nodes whose largest logit is that of their class; NaN is no class.

    Args:
        logits: `[nodes, classes]`.
        labels: `[nodes]`.

    Source: `ogb.nodeproppred.Evaluator`, metric `acc`.
    """
    return _evaluated("ogbn-arxiv", logits.argmax(dim=1, keepdim=True), labels.unsqueeze(1))


def ogb_roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean area under the ROC curves of the labels that some nodes have and others have not.

    Nodes whose label is NaN do not count for it.

    Args:
        logits: `[nodes, labels]`.
        labels: `[nodes, labels]` of zeros and ones.

    Raises:
        UsageError: There is no such label.

    Source: `ogb.nodeproppred.Evaluator`, metric `rocauc`.
    """
    try:
        return _evaluated("ogbn-proteins", logits.float(), labels)
    except RuntimeError as error:
        raise UsageError(
            f"ROC-AUC is not defined where no label is both there and not there among the "
            f"{len(labels)} nodes of a part ({error}): choose another split."
        ) from error


def _evaluated(name: str, predicted: Tensor, true: Tensor) -> Tensor:
    from curvlab.data.files._ogb import Evaluator

    evaluator = Evaluator(name)
    evaluator.num_tasks = true.shape[1]
    scores = evaluator.eval({"y_true": true, "y_pred": predicted})
    return torch.tensor(scores[evaluator.eval_metric], device=true.device)

"""Scores of OGB's own evaluator, for tables of its graphs."""

import numpy as np
import torch
from torch import Tensor

from curvlab.errors import UsageError


def ogb_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Fraction of nodes whose largest logit is that of their class, `[nodes]`; NaN is not a class.

    Source: `ogb.nodeproppred.Evaluator`, metric `acc`.
    """
    known = ~labels.isnan()
    return (logits.argmax(dim=1) == labels)[known].double().mean().float()


def ogb_roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean area under the ROC curves of the labels that some nodes have and others have not.

    Nodes whose label is NaN do not count for it. It is computed on the host. Logits and labels,
    zeros and ones, are `[nodes, labels]`.

    Source: `ogb.nodeproppred.Evaluator`, metric `rocauc`.
    """
    from sklearn.metrics import roc_auc_score  # takes a second to import

    areas = []
    for y, score in zip(labels.T.cpu().numpy(), logits.T.float().cpu().numpy(), strict=True):
        if (y == 0).any() and (y == 1).any():
            known = ~np.isnan(y)
            areas.append(roc_auc_score(y[known], score[known]))
    if not areas:
        raise UsageError(
            f"ROC-AUC is not defined where no label is both there and not there among the "
            f"{len(labels)} nodes of a part: choose another split."
        )
    return torch.tensor(np.mean(areas), dtype=torch.float32, device=labels.device)

"""Kinds of labels: number of logits, loss and metrics."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_f1_score,
    multiclass_accuracy,
    multiclass_f1_score,
    multilabel_auroc,
    multilabel_f1_score,
)

from curvlab.errors import UsageError
from curvlab.finite import finite_or_nan
from curvlab.metrics import ogb
from curvlab.metrics.coincidence import coincident_nodes

Metric = Callable[[Tensor, Tensor], Tensor]


class Labels(ABC):
    """Base class. Metrics are torchmetrics', in percent, and stay on the device.

    Attributes:
        logits: number of logits of a node.
        exclusive: whether a node has exactly one class.
        metrics: functions of logits `[nodes, logits]` and labels, by name.
        on_request: further metrics, computed only if one selects the weights; `ogb_acc` and
            `ogb_rocauc` are computed by OGB's evaluators, on a processor.
    """

    exclusive = True
    logits: int
    metrics: dict[str, Metric]
    on_request: dict[str, Metric]

    @abstractmethod
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of logits `[nodes, logits]`."""

    @abstractmethod
    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities of every class or label, `[nodes, classes]`."""

    def scores(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        return {name: self.score(name, logits, labels) for name in self.metrics}

    def score(self, name: str, logits: Tensor, labels: Tensor) -> Tensor:
        """One metric in percent; NaN if a logit is not finite."""
        return 100 * finite_or_nan(self.metrics[name], logits, labels)


class OneOfMany(Labels):
    r"""One class per node, `labels [nodes]`; the largest logit predicts it.

    The loss is cross-entropy, or with a margin the mean over nodes and classes c of
    `relu(margin - logit_y + logit_c)`, y the node's class, which is one of them.

    Source: the margin loss is HyboNet's (Chen et al. 2022), its code.
    """

    def __init__(self, classes: int, margin: float | None = None) -> None:
        self.logits = classes
        self.margin = margin
        of: dict[str, Any] = {"num_classes": classes, "validate_args": False}
        self.metrics = {
            "accuracy": partial(multiclass_accuracy, average="micro", **of),
            "f1_micro": partial(multiclass_f1_score, average="micro", **of),
            "f1_macro": partial(_f1_macro, **of),
        }
        self.on_request: dict[str, Metric] = {"ogb_acc": ogb.accuracy}
        if classes == 2:  # F1 of the second class is HGCN's metric on Disease
            self.metrics["f1_binary"] = lambda logits, y: binary_f1_score(
                logits.argmax(1), y, validate_args=False
            )
            self.on_request = {"roc_auc": lambda x, y: _roc_auc(_tied(x).diff(), y.unsqueeze(1))}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.margin is None:
            return F.cross_entropy(logits, labels)
        true_logits = logits.gather(1, labels.unsqueeze(1))
        return F.relu(self.margin - true_logits + logits).mean()

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)


class YesOrNo(OneOfMany):
    """Two classes with one logit, `labels [nodes]`: binary cross-entropy; positive above 0."""

    def __init__(self) -> None:
        super().__init__(2)
        self.logits = 1
        self.metrics = self.metrics | self.on_request

    def score(self, name: str, logits: Tensor, labels: Tensor) -> Tensor:
        return super().score(name, F.pad(logits, (1, 0)), labels)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), labels.to(logits.dtype))

    def probabilities(self, logits: Tensor) -> Tensor:
        return torch.cat([-logits, logits], -1).sigmoid()


class ManyOfMany(Labels):
    """Several labels per node, `labels [nodes, logits]` of zeros and ones.

    Micro metrics are over all labels of all nodes, macro metrics means over labels, ROC-AUC over
    those that some nodes have and others do not.
    """

    exclusive = False

    def __init__(self, count: int) -> None:
        def f1(average: Any) -> Metric:
            score = partial(multilabel_f1_score, average=average, validate_args=False)
            return lambda x, y: score((x > 0).long(), y.long(), num_labels=count)

        self.logits = count
        self.on_request = {"ogb_rocauc": lambda x, y: ogb.roc_auc(_tied(x), y)}
        self.metrics = {"f1_micro": f1("micro"), "f1_macro": f1("macro")}
        self.metrics["roc_auc"] = lambda x, y: _roc_auc(_tied(x), y)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()


def kind_of_labels(
    num_classes: int, multi_label: bool, metric: str | None = None, margin: float | None = None
) -> Labels:
    """Choose the kind of labels of a data module, and check the metric; None for any."""
    labels: Labels = OneOfMany(num_classes, margin)
    what = f"{num_classes} classes"
    if multi_label:
        labels = ManyOfMany(num_classes)
        what = "several labels per node"
    elif num_classes == 1:
        labels = YesOrNo()
        what = "two classes with one logit"
    if margin is not None and (multi_label or num_classes == 1):
        raise UsageError(
            f"margin={margin:g}: the margin loss needs one logit per class, not "
            f"{what}; set margin=None"
        )
    if metric is None:
        return labels
    if metric in labels.on_request:
        labels.metrics[metric] = labels.on_request[metric]
    if metric not in labels.metrics:
        raise UsageError(
            f"metric={metric!r}: a dataset with {what} is scored by "
            f"{', '.join({**labels.metrics, **labels.on_request})}, which dataset.metric names"
        )
    return labels


def ranks(logits: Tensor) -> Tensor:
    """Map logits to [0, 1], keeping their order and ties.

    Torchmetrics applies a sigmoid outside this range, which makes large logits equal.
    """
    values, positions = logits.unique(return_inverse=True)
    return positions / len(values)


def _f1_macro(logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    """Mean F1 of the classes, computed outside deterministic mode.

    In it torchmetrics counts in a table of nodes by squared classes. Counts are whole numbers, the
    same in any order.
    """
    strict = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        return multiclass_f1_score(logits, labels, average="macro", **options)
    finally:
        torch.use_deterministic_algorithms(strict, warn_only=warn_only)


def _tied(logits: Tensor) -> Tensor:
    """The logits `[nodes, logits]`, equal where they coincide but for rounding."""
    return logits[coincident_nodes(logits)]


def _roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the labels `[nodes, labels]` with both values; NaN if there are none."""
    two_valued = (labels.amin(0) != labels.amax(0)).nonzero().squeeze(1)
    if not len(two_valued):
        return logits.new_tensor(torch.nan)
    scores = ranks(logits[:, two_valued])
    labels = labels[:, two_valued].long()
    return multilabel_auroc(scores, labels, num_labels=len(two_valued), validate_args=False)

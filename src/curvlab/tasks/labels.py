"""Kinds of labels: number of logits, loss and metrics."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

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
    """Base class of the kinds of labels.

    Metrics are torchmetrics', in percent, and stay on the device.

    Attributes:
        logits: number of logits of a node.
        exclusive: whether a node has exactly one class.
        metrics: functions of logits `[nodes, logits]` and labels, by name.
        optional_metrics: further metrics, computed only if they select the weights. OGB's
            evaluators compute `ogb_acc` and `ogb_rocauc` on the CPU.
    """

    exclusive = True
    logits: int
    metrics: dict[str, Metric]
    optional_metrics: dict[str, Metric]

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


class MulticlassLabels(Labels):
    r"""One class per node, `labels [nodes]`. The largest logit is the prediction.

    The loss is cross-entropy. With a margin it is the mean of `relu(margin - logit_y + logit_c)`
    over nodes and all classes c, where y is the node's class.

    Source of the margin loss: code of HyboNet (Chen et al. 2022).
    """

    def __init__(self, classes: int, margin: float | None = None) -> None:
        self.logits = classes
        self.margin = margin
        options: dict[str, Any] = {"num_classes": classes, "validate_args": False}
        self.metrics = {
            "accuracy": partial(multiclass_accuracy, average="micro", **options),
            "f1_micro": partial(multiclass_f1_score, average="micro", **options),
            "f1_macro": partial(_f1_macro, **options),
        }
        self.optional_metrics: dict[str, Metric] = {"ogb_acc": ogb.accuracy}
        if classes == 2:
            self.metrics["f1_binary"] = _f1_binary
            self.optional_metrics = {"roc_auc": _binary_roc_auc}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.margin is None:
            return F.cross_entropy(logits, labels)
        true_logits = logits.gather(1, labels.unsqueeze(1))
        return F.relu(self.margin - true_logits + logits).mean()

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)


class BinaryLabels(MulticlassLabels):
    """Two classes with one logit, `labels [nodes]`. A logit above 0 predicts the second class.

    The loss is binary cross-entropy.
    """

    def __init__(self) -> None:
        super().__init__(2)
        self.logits = 1
        self.metrics = self.metrics | self.optional_metrics

    def score(self, name: str, logits: Tensor, labels: Tensor) -> Tensor:
        two_logits = F.pad(logits, (1, 0))
        return super().score(name, two_logits, labels)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        targets = labels.to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), targets)

    def probabilities(self, logits: Tensor) -> Tensor:
        return torch.cat([-logits, logits], -1).sigmoid()


class MultiLabels(Labels):
    """Several labels per node, `labels [nodes, logits]` of zeros and ones.

    Micro metrics are over all labels of all nodes, macro metrics are means over labels. ROC-AUC is
    the mean over the labels with both values.
    """

    exclusive = False

    def __init__(self, count: int) -> None:
        self.logits = count
        self.metrics = {
            "f1_micro": partial(self._f1, average="micro"),
            "f1_macro": partial(self._f1, average="macro"),
            "roc_auc": lambda x, y: _roc_auc(_with_ties(x), y),
        }
        self.optional_metrics = {"ogb_rocauc": lambda x, y: ogb.roc_auc(_with_ties(x), y)}

    def _f1(self, logits: Tensor, labels: Tensor, average: Literal["micro", "macro"]) -> Tensor:
        return multilabel_f1_score(
            (logits > 0).long(),
            labels.long(),
            num_labels=self.logits,
            average=average,
            validate_args=False,
        )

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()


def make_labels(
    num_classes: int, multi_label: bool, metric: str | None = None, margin: float | None = None
) -> Labels:
    """Make the kind of labels of a data module.

    Args:
        num_classes: number of logits.
        multi_label: whether a node has several labels.
        metric: metric that selects the weights; None for the first.
        margin: margin of the margin loss; None for cross-entropy.
    """
    labels: Labels
    if multi_label:
        labels = MultiLabels(num_classes)
        description = "several labels per node"
    elif num_classes == 1:
        labels = BinaryLabels()
        description = "two classes with one logit"
    else:
        labels = MulticlassLabels(num_classes, margin)
        description = f"{num_classes} classes"
    if margin is not None and (multi_label or num_classes == 1):
        raise UsageError(
            f"margin={margin:g}: the margin loss needs one logit per class, not "
            f"{description}; set margin=None"
        )
    if metric is None:
        return labels
    if metric in labels.optional_metrics:
        labels.metrics[metric] = labels.optional_metrics[metric]
    if metric not in labels.metrics:
        names = ", ".join({**labels.metrics, **labels.optional_metrics})
        raise UsageError(
            f"metric={metric!r}: a dataset with {description} is scored by {names}, which "
            "dataset.metric names"
        )
    return labels


def normalized_ranks(logits: Tensor) -> Tensor:
    """Map logits to [0, 1], keeping their order and ties.

    Torchmetrics applies a sigmoid to values outside this range, which makes large logits equal.
    """
    values, positions = logits.unique(return_inverse=True)
    return positions / len(values)


def _f1_binary(logits: Tensor, labels: Tensor) -> Tensor:
    """F1 of the second class, HGCN's metric on Disease."""
    return binary_f1_score(logits.argmax(1), labels, validate_args=False)


def _binary_roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """ROC-AUC of the difference of two logits."""
    difference = _with_ties(logits).diff()
    return _roc_auc(difference, labels.unsqueeze(1))


def _f1_macro(logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    """Mean F1 of the classes, computed outside deterministic mode.

    In deterministic mode torchmetrics counts in a table of nodes by squared classes. Counts are
    integers, which are the same in any order.
    """
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        return multiclass_f1_score(logits, labels, average="macro", **options)
    finally:
        torch.use_deterministic_algorithms(is_deterministic, warn_only=warn_only)


def _with_ties(logits: Tensor) -> Tensor:
    """The logits `[nodes, logits]`, exactly equal where they coincide up to rounding."""
    return logits[coincident_nodes(logits)]


def _roc_auc(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean ROC-AUC of the labels `[nodes, labels]` with both values; NaN if there are none."""
    two_valued = (labels.amin(0) != labels.amax(0)).nonzero().squeeze(1)
    if not len(two_valued):
        return logits.new_tensor(torch.nan)
    scores = normalized_ranks(logits[:, two_valued])
    labels = labels[:, two_valued].long()
    return multilabel_auroc(scores, labels, num_labels=len(two_valued), validate_args=False)

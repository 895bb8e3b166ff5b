"""Optimisers and schedules as configurations choose them: options first, parameters later.

`Adam(lr=0.01).build(model)` is torch's optimiser over the model's parameter groups. Another
optimiser is a subclass that names it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.optim.groups import manifold_parameters, parameter_groups
from curvlab.optim.riemannian import RiemannianAdam, RiemannianAdamW
from curvlab.options import Fraction, Incidental, NonNegativeFloat, PositiveFloat, PositiveInt


class GroupedOptimizer(Checked):
    """Options of an optimiser of torch whose parameter groups have rates of their own.

    Args:
        lr: learning rate.
        curvature_lr: learning rate of the curvatures, which never decay; docs/results says what
            0.01 does.
        weight_decay: weight decay of all other parameters.
        bias_weight_decay: weight decay of biases and other vectors and numbers; null: as of
            matrices.
        manifold_lr: learning rate of points of a manifold, such as a decoder's prototypes.
        manifold_weight_decay: weight decay of these points.
        fused: make one pass over each parameter in a step.
        **others: further options of torch's optimiser, such as `amsgrad`.
    """

    optimizer: Callable[..., Optimizer]
    with_points: Callable[..., Optimizer] | None = None

    def __init__(
        self,
        lr: PositiveFloat = 0.01,
        curvature_lr: PositiveFloat = 0.001,
        weight_decay: NonNegativeFloat = 0.0,
        bias_weight_decay: NonNegativeFloat | None = None,
        manifold_lr: PositiveFloat | None = None,
        manifold_weight_decay: NonNegativeFloat | None = None,
        fused: Incidental[bool] = True,
        **others: Any,
    ) -> None:
        self.groups = {
            "lr": lr,
            "curvature_lr": curvature_lr,
            "weight_decay": weight_decay,
            "bias_weight_decay": bias_weight_decay,
            "manifold_lr": manifold_lr,
            "manifold_weight_decay": manifold_weight_decay,
        }
        self.others = {"fused": fused, **others}
        self.optimizer([torch.zeros(1)], lr=lr, **self.others)  # refuses what it does not take

    def build(self, module: nn.Module) -> Optimizer:
        kind: Callable[..., Optimizer] | None = self.optimizer
        if manifold_parameters(module):
            of_points = self.groups["manifold_lr"], self.groups["manifold_weight_decay"]
            kind = None if None in of_points else self.with_points
        if kind is None:
            raise UsageError(
                "the decoder's points of a manifold are learned by Adam, with manifold_lr and "
                "manifold_weight_decay: use optimizer=adam_classification, or task.decoder=linear"
            )
        groups = parameter_groups(module, **self.groups)  # type: ignore[arg-type]
        sparse = any(isinstance(m, nn.Embedding) and m.sparse for m in module.modules())
        others = self.others | ({"fused": False} if sparse else {})
        if sparse:
            torch.sparse.check_sparse_tensor_invariants.disable()  # else torch warns that it is
        return kind(groups, lr=self.groups["lr"], **others)


class Adam(GroupedOptimizer):
    """torch's Adam; points of a manifold move along geodesics."""

    optimizer = torch.optim.Adam
    with_points = RiemannianAdam


class AdamW(GroupedOptimizer):
    """torch's AdamW, whose decay is decoupled; points of a manifold move along geodesics."""

    optimizer = torch.optim.AdamW
    with_points = RiemannianAdamW


class SGD(GroupedOptimizer):
    """torch's stochastic gradient descent; it has no step for points of a manifold."""

    optimizer = torch.optim.SGD


class Adagrad(GroupedOptimizer):
    """torch's Adagrad; it has no step for points of a manifold."""

    optimizer = torch.optim.Adagrad


class ReduceOnPlateau(Checked):
    """Lowers the learning rate when the validation score no longer rises.

    Args:
        factor: factor of the learning rate.
        patience: validations without a better score, one an epoch by default.
        threshold: relative improvement that counts as a better score.
        end_below: learning rate below which a run ends; null: never.
    """

    def __init__(
        self,
        factor: Fraction = 0.5,
        patience: PositiveInt = 10,
        threshold: NonNegativeFloat = 1e-4,
        end_below: PositiveFloat | None = None,
    ) -> None:
        self.end_below = end_below or 0.0
        self.options = {"factor": factor, "patience": patience, "threshold": threshold}

    def build(self, optimizer: Optimizer) -> ReduceLROnPlateau:
        return ReduceLROnPlateau(optimizer, mode="max", **self.options)  # type: ignore[arg-type]


class LowerOnce(Checked):
    """Multiplies the learning rate by a factor once, after a share of the run's steps.

    Args:
        factor: factor of the learning rate.
        after: share of the steps at the first rate.
    """

    end_below = 0.0

    def __init__(self, factor: Fraction = 0.1, after: Fraction = 0.5) -> None:
        self.factor = factor
        self.after = after

    def build(self, optimizer: Optimizer, steps: int) -> LambdaLR:
        def rate(step: int) -> float:
            return self.factor if step >= self.after * steps else 1.0

        return LambdaLR(optimizer, rate)

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
    """Options of an optimiser of torch, with a separate rate for each kind of parameter.

    Args:
        lr: learning rate.
        curvature_lr: learning rate of the curvatures, which never decay; docs/results says what
            0.01 does.
        weight_decay: weight decay of all other parameters.
        bias_weight_decay: weight decay of biases and other vectors and numbers; null:
            `weight_decay`.
        manifold_lr: learning rate of points of a manifold, such as a decoder's prototypes.
        manifold_weight_decay: weight decay of these points.
        fused: make one pass over each parameter in a step.
        **options: further options of torch's optimiser, such as `amsgrad`.

    Attributes:
        optimizer: class of torch.
        riemannian_optimizer: subclass of it that moves points of manifolds; None if there is none.
    """

    optimizer: Callable[..., Optimizer]
    riemannian_optimizer: Callable[..., Optimizer] | None = None

    def __init__(
        self,
        lr: PositiveFloat = 0.01,
        curvature_lr: PositiveFloat = 0.001,
        weight_decay: NonNegativeFloat = 0.0,
        bias_weight_decay: NonNegativeFloat | None = None,
        manifold_lr: PositiveFloat | None = None,
        manifold_weight_decay: NonNegativeFloat | None = None,
        fused: Incidental[bool] = True,
        **options: Any,
    ) -> None:
        self.groups = {
            "lr": lr,
            "curvature_lr": curvature_lr,
            "weight_decay": weight_decay,
            "bias_weight_decay": bias_weight_decay,
            "manifold_lr": manifold_lr,
            "manifold_weight_decay": manifold_weight_decay,
        }
        self.options = {"fused": fused, **options}
        # Constructed once here, so that torch checks the options.
        self.optimizer([torch.zeros(1)], lr=lr, **self.options)

    def build(self, module: nn.Module) -> Optimizer:
        make = self.optimizer
        if manifold_parameters(module):
            rates = self.groups["manifold_lr"], self.groups["manifold_weight_decay"]
            if self.riemannian_optimizer is None or None in rates:
                raise UsageError(
                    "the decoder's points of a manifold are learned by Adam, with manifold_lr and "
                    "manifold_weight_decay: use optimizer=adam_classification, or "
                    "task.decoder=linear"
                )
            make = self.riemannian_optimizer
        groups = parameter_groups(module, **self.groups)  # type: ignore[arg-type]
        options = dict(self.options)
        if any(isinstance(m, nn.Embedding) and m.sparse for m in module.modules()):
            options["fused"] = False
            # An explicit choice, without which torch warns.
            torch.sparse.check_sparse_tensor_invariants.disable()
        return make(groups, lr=self.groups["lr"], **options)


class Adam(GroupedOptimizer):
    """torch's Adam; points of a manifold move along geodesics."""

    optimizer = torch.optim.Adam
    riemannian_optimizer = RiemannianAdam


class AdamW(GroupedOptimizer):
    """torch's AdamW, whose decay is decoupled; points of a manifold move along geodesics."""

    optimizer = torch.optim.AdamW
    riemannian_optimizer = RiemannianAdamW


class SGD(GroupedOptimizer):
    """torch's stochastic gradient descent. It cannot move points of a manifold."""

    optimizer = torch.optim.SGD


class Adagrad(GroupedOptimizer):
    """torch's Adagrad. It cannot move points of a manifold."""

    optimizer = torch.optim.Adagrad


class ReduceOnPlateau(Checked):
    """Lowers the learning rate when the validation score no longer rises.

    Args:
        factor: factor of the learning rate.
        patience: number of validations without a better score; an epoch has one by default.
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

"""Parameter groups: separate rates of curvatures, points of manifolds and some submodules."""

from typing import Any

from torch import nn

from curvlab.manifolds import Curvature
from curvlab.manifolds._geoopt import geoopt

Rates = dict[str, float]
"""Learning rate `lr` and `weight_decay`, or one of them."""


def parameter_groups(
    module: nn.Module,
    lr: float = 0.01,
    curvature_lr: float = 0.001,
    weight_decay: float = 0.0,
    bias_weight_decay: float | None = None,
    manifold_lr: float | None = None,
    manifold_weight_decay: float | None = None,
) -> list[dict[str, Any]]:
    """Split a module's parameters into groups with separate rates, for any optimiser of torch.

    The groups are ordinary parameters, overrides, points of manifolds and curvatures. An attribute
    `weight_decay` or `lr` of a submodule overrides the rate of its parameters, unless it is None.
    `bias_weight_decay` overrides the weight decay of numbers and vectors: biases, scales, weights
    of norms.

        torch.optim.Adam(parameter_groups(model, lr=0.01))

    Args:
        module: any module.
        lr: learning rate.
        curvature_lr: learning rate of the parameters of `Curvature` modules, which never decay.
        weight_decay: weight decay of all other parameters.
        bias_weight_decay: weight decay of parameters with fewer than two dimensions; None:
            `weight_decay`.
        manifold_lr: learning rate of `geoopt.ManifoldParameter`s; None: `lr`.
        manifold_weight_decay: weight decay of `geoopt.ManifoldParameter`s; None: `weight_decay`.
    """
    curvatures: set[int] = set()
    for part in module.modules():
        if isinstance(part, Curvature):
            curvatures.update(id(p) for p in part.parameters())
    points = manifold_parameters(module)
    other_ids = curvatures | {id(p) for p in points}
    parameters = [p for p in module.parameters() if id(p) not in other_ids]
    parameter_ids = {id(p) for p in parameters}
    overrides: dict[int, Rates] = {}
    if bias_weight_decay is not None:
        for p in parameters:
            if p.dim() < 2:
                overrides[id(p)] = {"weight_decay": bias_weight_decay}
    for part in module.modules():
        options = {name: getattr(part, name, None) for name in ("weight_decay", "lr")}
        rates = {name: rate for name, rate in options.items() if rate is not None}
        if not rates:
            continue
        for p in part.parameters():
            if id(p) in parameter_ids:
                overrides.setdefault(id(p), {}).update(rates)
    distinct: list[Rates] = [{}]
    for rates in overrides.values():
        if rates not in distinct:
            distinct.append(rates)

    default: Rates = {"lr": lr, "weight_decay": weight_decay}
    groups: list[dict[str, Any]] = []
    for rates in distinct:
        members = [p for p in parameters if overrides.get(id(p), {}) == rates]
        groups.append({"params": members, **default, **rates})
    if points:
        group = {"params": points, **default}
        if manifold_lr is not None:
            group["lr"] = manifold_lr
        if manifold_weight_decay is not None:
            group["weight_decay"] = manifold_weight_decay
        groups.append(group)
    if curvatures:
        learnable = [p for p in module.parameters() if id(p) in curvatures]
        groups.append({"params": learnable, "lr": curvature_lr, "weight_decay": 0.0})
    return groups


def manifold_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Parameters of a module that are points of a manifold."""
    return [p for p in module.parameters() if isinstance(p, geoopt.ManifoldParameter)]

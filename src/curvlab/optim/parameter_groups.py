"""Parameter groups: curvatures learn at a rate of their own and never decay; parts decay apart.

Points of a manifold, as the prototypes of a decoder, have a rate and a decay of their own too, and
are moved along geodesics.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig
from torch import nn
from torch.optim import Optimizer

from curvlab.config.building import build
from curvlab.errors import UsageError
from curvlab.manifolds import Curvature
from curvlab.manifolds._geoopt import geoopt

WITH_POINTS = {
    "torch.optim.Adam": "curvlab.optim.RiemannianAdam",
    "torch.optim.AdamW": "curvlab.optim.RiemannianAdamW",
}
"""What an optimiser becomes where there are points of a manifold."""


def parameter_groups(
    module: nn.Module,
    curvature_lr: float,
    weight_decay: float,
    of_points: Mapping[str, Any] | None = None,
    bias_weight_decay: float | None = None,
) -> list[dict[str, Any]]:
    """Split a module's parameters into ordinary ones, points of manifolds and curvatures.

    A part with an attribute `weight_decay` or `lr` that is not None has a group of its own that
    decays by the one and learns at the other. So have numbers and vectors (biases, scales, weights
    of norms) if they decay by another value than matrices.

    Args:
        module: any module.
        curvature_lr: learning rate of the parameters of its `Curvature` modules.
        weight_decay: of all other parameters.
        of_points: `lr` and `weight_decay` of the `geoopt.ManifoldParameter`s, if there are any.
        bias_weight_decay: of parameters of less than two dimensions; None: as of the others.
    """
    curvatures = {
        id(parameter)
        for part in module.modules()
        if isinstance(part, Curvature)
        for parameter in part.parameters()
    }
    points = manifold_parameters(module)
    apart: dict[int, dict[str, float]] = {}
    if bias_weight_decay is not None:
        vectors = (p for p in module.parameters() if p.dim() < 2 and id(p) not in curvatures)
        apart |= {id(p): {"weight_decay": bias_weight_decay} for p in vectors}
    for part in module.modules():
        options = {name: getattr(part, name, None) for name in ("weight_decay", "lr")}
        own = {name: value for name, value in options.items() if value is not None}
        if own:
            members = (p for p in part.parameters() if id(p) not in curvatures)
            apart |= {id(p): {**apart.get(id(p), {}), **own} for p in members}
    for point in points:
        apart.pop(id(point), None)
    special = curvatures | apart.keys() | {id(p) for p in points}
    ordinary = [p for p in module.parameters() if id(p) not in special]
    groups: list[dict[str, Any]] = [{"params": ordinary, "weight_decay": weight_decay}]
    for own in [dict(items) for items in dict.fromkeys(tuple(o.items()) for o in apart.values())]:
        grouped = [p for p in module.parameters() if apart.get(id(p)) == own]
        groups.append({"params": grouped, "weight_decay": weight_decay, **own})
    if points:
        groups.append({"params": points, **(of_points or {})})
    if curvatures:
        learnable = [p for p in module.parameters() if id(p) in curvatures]
        groups.append({"params": learnable, "lr": curvature_lr, "weight_decay": 0.0})
    return groups


def manifold_parameters(module: nn.Module) -> list[nn.Parameter]:
    """The parameters of a module that are points of a manifold."""
    return [p for p in module.parameters() if isinstance(p, geoopt.ManifoldParameter)]


def build_optimizer(module: nn.Module, config: DictConfig) -> Optimizer:
    """Build the optimiser that `config` names over the parameter groups of `module`.

    Where there are points of a manifold Adam becomes `RiemannianAdam` and AdamW `RiemannianAdamW`,
    which are the same for all other parameters.

    Args:
        module: the model.
        config: a Hydra partial of a torch optimiser with `lr`, `curvature_lr`, `weight_decay`, for
            points of a manifold `manifold_lr` and `manifold_weight_decay`, and if biases decay by
            another value `bias_weight_decay`.

    Raises:
        UsageError: there are points of a manifold, and the optimiser has no step for them.
    """
    options = dict(config)
    of_points = {name: options.pop(f"manifold_{name}", None) for name in ("lr", "weight_decay")}
    if manifold_parameters(module):
        if None in of_points.values() or options["_target_"] not in WITH_POINTS:
            raise UsageError(
                "the decoder's points of a manifold are learned by Adam, with manifold_lr and "
                "manifold_weight_decay: use optimizer=adam_classification, or task.decoder=linear"
            )
        options["_target_"] = WITH_POINTS[options["_target_"]]
    groups = parameter_groups(
        module,
        options.pop("curvature_lr"),
        options.pop("weight_decay"),
        of_points,
        options.pop("bias_weight_decay", None),
    )
    return build(options)(groups)

"""Parameter groups: curvatures learn at a rate of their own and never decay; parts decay apart."""

from typing import Any

from omegaconf import DictConfig
from torch import nn
from torch.optim import Optimizer

from curvlab.building import build
from curvlab.manifolds import Curvature


def parameter_groups(
    module: nn.Module, curvature_lr: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Split a module's parameters into ordinary ones and curvatures.

    A part with an attribute `weight_decay` that is not None has a group of its own that decays by
    it.

    Args:
        module: any module.
        curvature_lr: learning rate of the parameters of its `Curvature` modules.
        weight_decay: of all other parameters.
    """
    curvatures = {
        id(parameter)
        for part in module.modules()
        if isinstance(part, Curvature)
        for parameter in part.parameters()
    }
    apart: dict[int, float] = {}
    for part in module.modules():
        decay = getattr(part, "weight_decay", None)
        if decay is not None:
            apart |= {id(p): decay for p in part.parameters() if id(p) not in curvatures}
    ordinary = [p for p in module.parameters() if id(p) not in curvatures | apart.keys()]
    groups: list[dict[str, Any]] = [{"params": ordinary, "weight_decay": weight_decay}]
    for decay in dict.fromkeys(apart.values()):
        members = [p for p in module.parameters() if apart.get(id(p)) == decay]
        groups.append({"params": members, "weight_decay": decay})
    if curvatures:
        learnable = [p for p in module.parameters() if id(p) in curvatures]
        groups.append({"params": learnable, "lr": curvature_lr, "weight_decay": 0.0})
    return groups


def build_optimizer(module: nn.Module, config: DictConfig) -> Optimizer:
    """Build the optimiser that `config` names over the parameter groups of `module`.

    Args:
        module: the model.
        config: a Hydra partial of a torch optimiser with `lr`, `curvature_lr`, `weight_decay`.
    """
    options = dict(config)
    groups = parameter_groups(module, options.pop("curvature_lr"), options.pop("weight_decay"))
    return build(options)(groups)

"""Parameter groups: separate rates for curvatures, points of manifolds and some parts."""

from typing import Any

from torch import nn

from curvlab.manifolds import Curvature
from curvlab.manifolds._geoopt import geoopt


def parameter_groups(
    module: nn.Module,
    lr: float = 0.01,
    curvature_lr: float = 0.001,
    weight_decay: float = 0.0,
    bias_weight_decay: float | None = None,
    manifold_lr: float | None = None,
    manifold_weight_decay: float | None = None,
) -> list[dict[str, Any]]:
    """Split a module's parameters into ordinary ones, points of manifolds and curvatures.

    Any optimiser of torch takes the groups: `torch.optim.Adam(parameter_groups(model, lr=0.01))`.
    A part with an attribute `weight_decay` or `lr` that is not None has a group of its own that
    decays by the one and learns at the other. So have numbers and vectors (biases, scales, weights
    of norms) if they decay by another value than matrices.

    Args:
        module: any module.
        lr: learning rate.
        curvature_lr: learning rate of the parameters of its `Curvature` modules, which never decay.
        weight_decay: weight decay of all other parameters.
        bias_weight_decay: weight decay of parameters of less than two dimensions; None:
            `weight_decay`.
        manifold_lr: learning rate of the `geoopt.ManifoldParameter`s; None: as of the others.
        manifold_weight_decay: weight decay of the manifold's parameters; None: `weight_decay`.
    """
    curvatures = {
        id(parameter)
        for part in module.modules()
        if isinstance(part, Curvature)
        for parameter in part.parameters()
    }
    points = manifold_parameters(module)
    special_rates: dict[int, dict[str, float]] = {}
    if bias_weight_decay is not None:
        vectors = (p for p in module.parameters() if p.dim() < 2 and id(p) not in curvatures)
        special_rates |= {id(p): {"weight_decay": bias_weight_decay} for p in vectors}
    for part in module.modules():
        options = {name: getattr(part, name, None) for name in ("weight_decay", "lr")}
        part_rates = {name: value for name, value in options.items() if value is not None}
        if part_rates:
            members = (p for p in part.parameters() if id(p) not in curvatures)
            special_rates |= {
                id(p): {**special_rates.get(id(p), {}), **part_rates} for p in members
            }
    for point in points:
        special_rates.pop(id(point), None)
    special = curvatures | special_rates.keys() | {id(p) for p in points}
    ordinary = [p for p in module.parameters() if id(p) not in special]
    rates = {"lr": lr, "weight_decay": weight_decay}
    groups: list[dict[str, Any]] = [{"params": ordinary, **rates}]
    for part_rates in [
        dict(items) for items in dict.fromkeys(tuple(o.items()) for o in special_rates.values())
    ]:
        grouped = [p for p in module.parameters() if special_rates.get(id(p)) == part_rates]
        groups.append({"params": grouped, **rates, **part_rates})
    if points:
        of_points = {"lr": manifold_lr, "weight_decay": manifold_weight_decay}
        given = {name: value for name, value in of_points.items() if value is not None}
        groups.append({"params": points, **rates, **given})
    if curvatures:
        learnable = [p for p in module.parameters() if id(p) in curvatures]
        groups.append({"params": learnable, "lr": curvature_lr, "weight_decay": 0.0})
    return groups


def manifold_parameters(module: nn.Module) -> list[nn.Parameter]:
    """The parameters of a module that are points of a manifold."""
    return [p for p in module.parameters() if isinstance(p, geoopt.ManifoldParameter)]

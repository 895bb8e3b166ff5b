"""Optimisers for models with curvatures and with points of manifolds."""

from curvlab.optim.groups import parameter_groups
from curvlab.optim.optimisers import (
    SGD,
    Adam,
    AdamW,
    GroupedOptimizer,
    LowerOnce,
    ReduceOnPlateau,
)
from curvlab.optim.riemannian import RiemannianAdam, RiemannianAdamW

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "GroupedOptimizer",
    "LowerOnce",
    "ReduceOnPlateau",
    "RiemannianAdam",
    "RiemannianAdamW",
    "parameter_groups",
]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)

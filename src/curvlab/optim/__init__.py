"""Optimisers for models with curvatures and with points of manifolds."""

from curvlab.optim.parameter_groups import build_optimizer
from curvlab.optim.riemannian import RiemannianAdam, RiemannianAdamW

__all__ = ["RiemannianAdam", "RiemannianAdamW", "build_optimizer"]

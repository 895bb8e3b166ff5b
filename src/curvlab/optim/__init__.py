"""Optimisers for models with curvatures."""

from curvlab.optim.parameter_groups import build_optimizer

__all__ = ["build_optimizer"]

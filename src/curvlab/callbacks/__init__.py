"""What happens around the steps: progress, curves and curvatures, guards, timing, logging."""

from curvlab.callbacks.best_validation import BestValidation
from curvlab.callbacks.checkpoint import LastCheckpoint
from curvlab.callbacks.curves import Curves, curvatures
from curvlab.callbacks.finite_guard import DivergedError, FiniteGuard, check_weights
from curvlab.callbacks.loggers import wandb_logger
from curvlab.callbacks.point_shares import PointShares
from curvlab.callbacks.progress import RunProgress
from curvlab.callbacks.reproducibility import RandomState
from curvlab.callbacks.timing import StepTimer

__all__ = [
    "BestValidation",
    "Curves",
    "DivergedError",
    "FiniteGuard",
    "LastCheckpoint",
    "PointShares",
    "RandomState",
    "RunProgress",
    "StepTimer",
    "check_weights",
    "curvatures",
    "wandb_logger",
]

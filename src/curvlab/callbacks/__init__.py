"""Callbacks: progress, curves and curvatures, guards, timing, logging."""

from curvlab.callbacks.best_validation import BestValidation
from curvlab.callbacks.checkpoint import LastCheckpoint, PlainFiles, RandomState
from curvlab.callbacks.cuda_graphs import CudaGraphs
from curvlab.callbacks.curves import Curves, EncoderStatistics, StepTimer, curvatures
from curvlab.callbacks.finite_guard import FiniteGuard, check_weights
from curvlab.callbacks.loggers import log_picture, mlflow_logger, tensorboard_logger, wandb_logger
from curvlab.callbacks.progress import RunProgress

__all__ = [
    "BestValidation",
    "CudaGraphs",
    "Curves",
    "EncoderStatistics",
    "FiniteGuard",
    "LastCheckpoint",
    "PlainFiles",
    "RandomState",
    "RunProgress",
    "StepTimer",
    "check_weights",
    "curvatures",
    "log_picture",
    "mlflow_logger",
    "tensorboard_logger",
    "wandb_logger",
]

"""Callbacks: progress, curves and curvatures, guards, timing, logging."""

from curvlab.callbacks.best_validation import BestValidation as BestValidation
from curvlab.callbacks.checkpoint import LastCheckpoint as LastCheckpoint
from curvlab.callbacks.checkpoint import PlainFiles as PlainFiles
from curvlab.callbacks.checkpoint import RandomState as RandomState
from curvlab.callbacks.cuda_graphs import CudaGraphs as CudaGraphs
from curvlab.callbacks.curves import Curves as Curves
from curvlab.callbacks.curves import EncoderStatistics as EncoderStatistics
from curvlab.callbacks.curves import StepTimer as StepTimer
from curvlab.callbacks.curves import curvatures as curvatures
from curvlab.callbacks.finite_guard import FiniteGuard as FiniteGuard
from curvlab.callbacks.finite_guard import check_weights as check_weights
from curvlab.callbacks.loggers import log_picture as log_picture
from curvlab.callbacks.loggers import mlflow_logger as mlflow_logger
from curvlab.callbacks.loggers import tensorboard_logger as tensorboard_logger
from curvlab.callbacks.loggers import wandb_logger as wandb_logger
from curvlab.callbacks.progress import RunProgress as RunProgress

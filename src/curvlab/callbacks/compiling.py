"""Compiling in the course of a run, once it is known what a step takes."""

from typing import Any

from lightning import Callback, LightningModule, Trainer

from curvlab.callbacks.timing import StepTimer
from curvlab.errors import UsageError
from curvlab.layers.compilation import Compilable, compile_parts

SECONDS = 90.0
"""What compiling takes: FPS-T on Web-Edu took 80 s longer with it, on one thread."""

GAIN = 0.15
"""The part of a step that it saves: of the same runs a step went from 152 to 126 ms."""


class CompilesIfWorthIt(Callback):
    """Compile between two epochs if the steps that are left save more time than compiling takes.

    Of several processes all follow the first one's clock. Nothing happens where nothing is
    `Compilable` or no compiler works.

    Args:
        timer: of the run.
        accelerator: of Lightning.
    """

    def __init__(self, timer: StepTimer, accelerator: str) -> None:
        self._timer, self._accelerator = timer, accelerator
        self._tried = False

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Look whether there is anything to compile."""
        self._tried = not any(isinstance(part, Compilable) for part in pl_module.modules())

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Decide, after each epoch until the first yes; the first epoch's steps are the slowest."""
        seconds: Any = (self._timer.ms_per_step or 0.0) / 1000
        if self._tried or trainer.current_epoch == 0:
            return
        left = trainer.max_steps - trainer.global_step
        if trainer.strategy.broadcast(left * seconds * GAIN < SECONDS):
            return
        self._tried = True
        try:
            compile_parts(pl_module, self._accelerator)
        except UsageError:  # it goes on as it began
            return

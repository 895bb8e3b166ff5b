"""The place in a training where a signal may end it."""

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from curvlab.process import in_group
from curvlab.run import signals


class EndsBySignal(Callback):
    """Ends a training that was sent a signal after its next checkpoint, or when time is over.

    It must come after what writes the checkpoint. Processes of a group end in the same epoch: one
    that ended alone would leave the others waiting.
    """

    def __init__(self) -> None:
        self._trains = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Signals wait from here on."""
        signals.again()  # Lightning has its own for SIGTERM, which says nothing
        signals.hold()
        self._trains = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Do not wait longer for the checkpoint than the signal allows."""
        signals.check()

    def on_validation_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, *_: Any, **__: Any
    ) -> None:
        """Nor in a validation."""
        signals.check()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The checkpoint is written: end here, if one of the group was sent a signal."""
        if in_group():
            sent = torch.tensor(int(signals.received() or 0), device=trainer.strategy.root_device)
            torch.distributed.all_reduce(sent, torch.distributed.ReduceOp.MAX)
            if sent.item():
                raise signals.Interrupted(int(sent.item()))
        signals.check(at_checkpoint=True)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Signals end the process at once again."""
        self._release()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Likewise."""
        self._release()

    def _release(self) -> None:
        if self._trains:
            self._trains = False
            signals.release()

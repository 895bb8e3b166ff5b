"""The state from which an interrupted run goes on."""

from pathlib import Path

from lightning import Callback, LightningModule, Trainer

from curvlab.files import arriving


class LastCheckpoint(Callback):
    """Writes the whole state of the run after each epoch, in place of the epoch's before.

    It must come after all callbacks whose state it is to hold. Lightning's own `ModelCheckpoint`
    keeps a last checkpoint only beside others, and a kill while it writes can leave half a file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the checkpoint; it is whole or the old one."""
        if not trainer.is_global_zero:
            trainer.save_checkpoint(self.path)  # writes nothing, but the first process waits
            return
        with arriving(self.path) as partial:
            trainer.save_checkpoint(partial)

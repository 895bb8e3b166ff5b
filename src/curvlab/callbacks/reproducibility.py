"""What a checkpoint needs beyond Lightning's for a resumed run to equal an uninterrupted one."""

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer


class RandomState(Callback):
    """Keeps torch's generators, on the processor and on the accelerators, in the checkpoint."""

    def __init__(self) -> None:
        self._saved: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """The generators' states."""
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return {"cpu": torch.get_rng_state(), "cuda": cuda}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the states until training starts: setting up may draw numbers."""
        self._saved = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on where the interrupted run stopped."""
        if self._saved is not None:
            torch.set_rng_state(self._saved["cpu"].cpu())
            if self._saved["cuda"]:
                torch.cuda.set_rng_state_all([state.cpu() for state in self._saved["cuda"]])

"""What a checkpoint needs beyond Lightning's for a resumed run to equal an uninterrupted one."""

from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer


def random_state() -> dict[str, Any]:
    """States of torch's generators, on the processor and on the accelerators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: dict[str, Any]) -> None:
    """Go back to a state of torch's generators."""
    torch.set_rng_state(state["cpu"].cpu())
    if state["cuda"]:
        torch.cuda.set_rng_state_all([part.cpu() for part in state["cuda"]])


class RandomState(Callback):
    """Keeps torch's generators in the checkpoint."""

    def __init__(self) -> None:
        self._saved: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """The generators' states."""
        return random_state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the states until training starts: setting up may draw numbers."""
        self._saved = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on where the interrupted run stopped."""
        if self._saved is not None:
            set_random_state(self._saved)

"""State beyond Lightning's that makes a resumed run equal an uninterrupted one."""

from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer

from curvlab.process import in_group, rank


def random_state() -> dict[str, Any]:
    """States of torch's generators, on the processor and on the GPU in use, if there is one."""
    cuda = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: dict[str, Any]) -> None:
    """Go back to a state of torch's generators."""
    torch.set_rng_state(state["cpu"].cpu())
    if state["cuda"] and torch.cuda.is_available():  # the run may go on elsewhere
        torch.cuda.set_rng_state(state["cuda"][0].cpu())


class RandomState(Callback):
    """Keeps torch's generators in the checkpoint, those of all processes of the run.

    Processes start with the same numbers, so that they make the same model; from the first step on
    each has numbers of its own.
    If `alike`, all processes draw what one process alone would, so all have its dropout.
    """

    def __init__(self, alike: bool = False) -> None:
        # Lightning goes back to the seed when several processes meet.
        self._saved: dict[str, Any] | None = random_state() if alike else None

    def state_dict(self) -> dict[str, Any]:
        """The generators' states."""
        state = random_state()
        if not in_group():
            return state
        states: list[Any] = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(states, state)
        return {"processes": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the states until training starts: setting up may draw numbers."""
        self._saved = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on where the interrupted run stopped."""
        if self._saved is not None:
            states = self._saved.get("processes")
            set_random_state(states[rank()] if states else self._saved)
        elif rank():
            own = np.random.SeedSequence(torch.initial_seed(), spawn_key=(rank(),))
            torch.manual_seed(int(own.generate_state(1)[0]))

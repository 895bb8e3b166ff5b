"""The state from which an interrupted run resumes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor

from curvlab.checksums import add_facts
from curvlab.files import atomic_path, check_fences
from curvlab.process import is_distributed, rank


class PlainFiles(TorchCheckpointIO):
    """Writes a checkpoint directly to its path, not through memory and `$TMPDIR` as Lightning."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        """Write the checkpoint to a plain file, whose errors name the cause."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            torch.save(checkpoint, file)


class LastCheckpoint(Callback):
    """Writes the state of the run after each epoch, and keeps the previous state.

    This callback must come after all callbacks whose state it saves.

    Args:
        path: File of the newest state.
        previous: File of the previous state.
        facts: Plain values about the run, stored in the file too.

    Attributes:
        has_started: Whether training has started.
    """

    def __init__(self, path: Path, previous: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.previous = previous
        self.facts = facts
        self.has_started = False
        self._scores: dict[str, Tensor] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"scores": self._scores}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._scores = state_dict["scores"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Replay the scores of a resumed run to its schedulers."""
        self.has_started = True
        for config in trainer.lr_scheduler_configs:
            if config.monitor in self._scores:
                pl_module.lr_scheduler_step(config.scheduler, self._scores[config.monitor])

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the checkpoint atomically after a validation, where Lightning resumes exactly."""
        interval = trainer.check_val_every_n_epoch or 1
        if (trainer.current_epoch + 1) % interval:
            return
        metrics = trainer.callback_metrics
        monitors = {config.monitor for config in trainer.lr_scheduler_configs}
        self._scores = {name: metrics[name] for name in monitors if name in metrics}
        if not trainer.is_global_zero:
            # Writes nothing, but takes part in the collective calls.
            trainer.save_checkpoint(self.path)
            return
        with atomic_path(self.path) as partial:
            trainer.save_checkpoint(partial)
            add_facts(partial, {"step": trainer.global_step, **self.facts})
            if self.path.exists():
                check_fences(self.path)
                self.path.replace(self.previous)


def random_state() -> dict[str, Any]:
    """States of torch's generators of the CPU and, if there is one, the current GPU."""
    cuda = []
    if torch.cuda.is_available():
        cuda.append(torch.cuda.get_rng_state())
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: dict[str, Any]) -> None:
    """Restore a state of torch's generators."""
    torch.set_rng_state(state["cpu"].cpu())
    if state["cuda"] and torch.cuda.is_available():  # the run may resume on another machine
        torch.cuda.set_rng_state(state["cuda"][0].cpu())


class RandomState(Callback):
    """Saves the states of torch's generators in the checkpoint.

    Args:
        same_on_all_ranks: Start all processes from the same state; False: seed each differently.
    """

    def __init__(self, same_on_all_ranks: bool = False) -> None:
        self._initial: dict[str, Any] | None = None
        if same_on_all_ranks:
            # Lightning resets the seed when the processes of a run join.
            self._initial = random_state()

    def state_dict(self) -> dict[str, Any]:
        state = random_state()
        if not is_distributed():
            return state
        states: list[Any] = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(states, state)
        return {"processes": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the states until training starts: setting up may draw numbers."""
        self._initial = state_dict

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._initial is not None:
            states = self._initial.get("processes")
            state = states[rank()] if states else self._initial
            set_random_state(state)
        elif rank():
            seeds = np.random.SeedSequence(torch.initial_seed(), spawn_key=(rank(),))
            torch.manual_seed(int(seeds.generate_state(1)[0]))

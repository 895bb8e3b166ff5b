"""A training run that takes milliseconds, on a module with a curvature."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.loaders.datamodule import RepeatedGraph
from curvlab.manifolds import Stereographic
from curvlab.run.reporting import quiet

EPOCH = 5


class Counting(nn.Module):
    """Adds a weight that grows by one a step; `break_at` is the first step that makes it NaN."""

    def __init__(self, break_at: int | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        # The weight at step t is t - 1.
        self.limit = float("inf") if break_at is None else break_at - 1.5

    def forward(self, x: Tensor) -> Tensor:
        allowed = self.weight.detach() < self.limit
        return x + self.weight + torch.where(allowed, 0.0, torch.nan)


class Small(LightningModule):
    """The loss is minus the weight, so that plain descent with rate 1 counts the steps."""

    def __init__(self, break_at: int | None = None) -> None:
        super().__init__()
        self.space = Stereographic(2, -0.5)
        self.before = nn.Identity()
        self.counting = Counting(break_at)
        self.after = nn.Identity()

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return -self.after(self.counting(self.before(batch.x))).sum()

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self.log("map", self.counting.weight * 2, batch_size=1)

    def loss_scale(self, batch: Data) -> int:
        return 10

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1.0)


@pytest.fixture
def batch() -> Data:
    """A graph of one node, whose feature is 0."""
    edge_index = torch.zeros(2, 1, dtype=torch.long)
    return Data(x=torch.zeros(1), edge_index=edge_index, num_nodes=1)


@pytest.fixture
def small() -> type[Small]:
    """The module's class."""
    return Small


@pytest.fixture
def fit(batch: Data, tmp_path: Path) -> Callable[..., Trainer]:
    """Train on the processor, in epochs of five steps with validation at their ends.

    A step averages the gradients of so many `batches`.
    """

    def run(
        module: LightningModule,
        callbacks: list[Callback],
        steps: int,
        checkpoint: Path | None = None,
        batches: int = 1,
    ) -> Trainer:
        with quiet():
            trainer = Trainer(
                max_steps=steps,
                max_epochs=-1,
                accelerator="cpu",
                callbacks=callbacks,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                num_sanity_val_steps=0,
                default_root_dir=tmp_path,
                accumulate_grad_batches=batches,
            )
            train, validate = RepeatedGraph([batch] * EPOCH * batches), RepeatedGraph([batch])
            trainer.fit(module, train, validate, ckpt_path=checkpoint, weights_only=True)
        return trainer

    return run

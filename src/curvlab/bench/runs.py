"""The parts of real runs, built from the configuration as `train.py` builds them."""

from collections.abc import Callable

import torch
from lightning import LightningModule
from torch_geometric.data import Data

from curvlab.config.compose import compose
from curvlab.run.parts import build_data, build_task


def build_run(device: torch.device, *overrides: str) -> tuple[LightningModule, Data]:
    """Build the task and the prepared graph of a run, on the device."""
    torch.manual_seed(0)
    config = compose(overrides)
    data = build_data(config)
    task = build_task(config, data).to(device)
    return task, data.graph.to(device)


def training_step(task: LightningModule, graph: Data) -> Callable[[], None]:
    """One optimiser step in plain PyTorch, without the schedule of its rate."""
    configured = task.configure_optimizers()
    optimizer = configured["optimizer"] if isinstance(configured, dict) else configured
    assert isinstance(optimizer, torch.optim.Optimizer)

    def step() -> None:
        optimizer.zero_grad()
        loss = task.training_step(graph, 0)
        assert isinstance(loss, torch.Tensor)
        loss.backward()
        optimizer.step()

    return step

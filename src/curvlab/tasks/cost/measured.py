"""Time and memory of a forward pass, and of a step of training."""

from functools import partial

import torch
from lightning import LightningModule
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.tasks.cost.timing import Work, median_ms, peak_memory_mb

MEGABYTE = 2**20
"""Bytes, of the megabytes that FPS-T prints (its GCN needs little more than one N x N matrix)."""


@torch.no_grad()
def inference_cost(encoder: nn.Module, graph: Data, passes: int) -> dict[str, float]:
    """Cost of a forward pass.

    Args:
        encoder: the model.
        graph: prepared, on the model's device.
        passes: forward passes that are timed.

    Returns:
        `inference_ms` and `inference_mb`, see `timed_and_weighed`.
    """
    return timed_and_weighed("inference", partial(encoder, graph), encoder, graph, passes)


def step_cost(task: LightningModule, batch: Data, passes: int) -> dict[str, float]:
    """Cost of forward, loss and backward, without the optimiser's.

    Args:
        task: whose `training_step` makes the loss.
        batch: of training, on any device.
        passes: steps that are timed.

    Returns:
        `step_ms` and `step_mb`, see `timed_and_weighed`.
    """

    def step() -> None:
        task.zero_grad()
        loss = task.training_step(batch, 0)
        assert isinstance(loss, Tensor)
        loss.backward()

    training = task.training
    task.train()
    with torch.inference_mode(False), torch.enable_grad():
        batch = batch.to(task.device)
        cost = timed_and_weighed("step", step, task, batch, passes)
    task.zero_grad()
    task.train(training)
    return cost


def training_step(task: LightningModule, batch: Data) -> Work:
    """One optimiser step in plain PyTorch, without the schedule of its rate."""
    configured = task.configure_optimizers()
    optimizer = configured["optimizer"] if isinstance(configured, dict) else configured
    assert isinstance(optimizer, torch.optim.Optimizer)

    def step() -> None:
        optimizer.zero_grad()
        loss = task.training_step(batch, 0)
        assert isinstance(loss, torch.Tensor)
        loss.backward()
        optimizer.step()

    return step


def timed_and_weighed(
    name: str, work: Work, model: nn.Module, graph: Data, passes: int
) -> dict[str, float]:
    """Median milliseconds of some work, and the most memory held during it.

    The memory is the graph's, the weights' and what the work needs on top: on a GPU by PyTorch's
    allocator, on a processor by the growth of the process. Where that cannot be measured (outside
    Linux), there is no `NAME_mb`.

    Args:
        name: of the work.
        work: what is measured.
        model: whose weights are held.
        graph: that is held.
        passes: calls that are timed, after some to warm up.

    Returns:
        `NAME_ms` and `NAME_mb` (of 2^20 bytes).
    """
    device = next(model.parameters()).device
    cost = {f"{name}_ms": median_ms({name: work}, device, passes)[name]}
    needed = peak_memory_mb(work, device)
    if needed is not None:
        cost[f"{name}_mb"] = (held_bytes(model, graph) + 1e6 * needed) / MEGABYTE
    return cost


def held_bytes(encoder: nn.Module, graph: Data) -> int:
    """Bytes of the weights and of the graph's tensors, sparse ones by what they store."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    for value in graph.to_dict().values():
        if isinstance(value, Tensor):
            tensors += _parts(value)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _parts(tensor: Tensor) -> list[Tensor]:
    """A tensor, or the three that a matrix in compressed rows consists of."""
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]

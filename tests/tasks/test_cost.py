"""Costs: what is counted, and what a run writes down."""

import sys

import pytest
import torch
from lightning import LightningModule
from torch import nn
from torch_geometric.data import Data

from curvlab.tasks.cost.steps import step_cost
from curvlab.tasks.cost.timing import MEGABYTE, held_bytes, time_and_memory

pytestmark = pytest.mark.slow

linux = pytest.mark.skipif(sys.platform != "linux", reason="the growth of a process is Linux's")


class Counting(nn.Module):
    """A model that needs a known number of megabytes."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.megabytes = megabytes

    def forward(self, graph: Data) -> torch.Tensor:
        assert not torch.is_grad_enabled()
        return torch.ones(self.megabytes * MEGABYTE // 4).sum() + self.weight + graph.x.sum()


def graph_of(megabytes: int) -> Data:
    return Data(x=torch.ones(MEGABYTE // 4, megabytes))


@linux
@pytest.mark.parametrize("passes", [1, 5])
def test_memory_is_the_graphs_and_what_one_pass_needs(passes):
    model, graph = Counting(64), graph_of(8)
    with torch.no_grad():
        cost = time_and_memory("inference", lambda: model(graph), model, graph, passes)
    assert cost["inference_mb"] == pytest.approx(72, abs=8)
    assert cost["inference_ms"] > 0


def test_held_bytes_by_hand():
    matrix = torch.eye(5).to_sparse_csr()
    graph = Data(x=torch.zeros(5, 3), edge_index=torch.zeros(2, 4, dtype=torch.int64), adj=matrix)
    model = nn.BatchNorm1d(3)  # weight, bias, mean and variance of 3 floats, one counter
    assert held_bytes(model, graph) == (60 + 64 + 6 * 8 + 5 * 8 + 5 * 4) + (4 * 12 + 8)


class Stepping(LightningModule):
    """A task whose step holds a known number of megabytes until its gradient is there."""

    def __init__(self, megabytes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(megabytes * MEGABYTE // 4))
        self.modes = []

    def training_step(self, batch: Data, batch_idx: int) -> torch.Tensor:
        self.modes.append(self.training and torch.is_grad_enabled())
        return (self.weight * self.weight.exp()).sum() * batch.x.sum()


@linux
def test_a_step_is_weighed_with_its_gradient():
    """Weights, what two products keep, and gradients: at least three times the weights."""
    task = Stepping(32).eval()
    with torch.inference_mode():
        cost = step_cost(task, graph_of(1), passes=2)
    assert cost["step_mb"] > 3 * 32
    assert cost["step_ms"] > 0
    assert all(task.modes)
    assert not task.training
    assert task.weight.grad is None

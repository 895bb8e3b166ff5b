"""Time and memory of callables on a CPU or a GPU, and tasks whose test measures them."""

import ctypes
import gc
import statistics
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule
from torch import nn
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.files.cache import dense_parts
from curvlab.models.encoder import Encoder
from curvlab.options import PositiveInt

Work = Callable[[], Any]

MEGABYTE = 2**20
"""Bytes of a megabyte in FPS-T (its GCN needs little more than one N x N matrix)."""


class CostTask(Checked, LightningModule):
    """Mixin for tasks whose test logs `cost` instead of scores.

    Args:
        encoder: the model.
        passes: timed calls, after a warm-up.
        **options: those of the task.
    """

    selects_checkpoint = False
    score: str

    def __init__(self, encoder: Encoder, passes: PositiveInt = 20, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.score = type(self).score
        self.passes = passes

    @abstractmethod
    def cost(self, batch: Data) -> dict[str, float]:
        """Measure costs, logged as `test/NAME`."""

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log nothing: time and memory do not depend on the weights."""

    def test_step(self, batch: Data, batch_idx: int) -> None:
        costs = {f"test/{name}": float(value) for name, value in self.cost(batch).items()}
        self.log_dict(costs, batch_size=1)


def time_and_memory(
    name: str, work: Work, model: nn.Module, graph: Data, passes: int
) -> dict[str, float]:
    """Median milliseconds of a call, `NAME_ms`, and the memory of graph, weights and its peak.

    That is `NAME_mb`, in 2^20 bytes, on Linux alone.
    """
    device = next(model.parameters()).device
    cost = {f"{name}_ms": median_ms({name: work}, device, passes)[name]}
    needed = peak_memory_mb(work, device)
    if needed is not None:
        cost[f"{name}_mb"] = (held_bytes(model, graph) + 1e6 * needed) / MEGABYTE
    return cost


def held_bytes(model: nn.Module, graph: Data) -> int:
    """Bytes of the weights and of the graph's tensors; of sparse ones, of their stored entries."""
    of_model = dict([*model.named_parameters(), *model.named_buffers()])
    return sum(t.nbytes for part in (of_model, graph.to_dict()) for t in dense_parts(part).values())


def median_ms(works: Mapping[str, Work], device: torch.device, runs: int = 20) -> dict[str, float]:
    """Median milliseconds of each work, called in turn so that a busy machine slows all alike.

    Each is called three times, or once if it takes more than a second, before it is timed.
    """
    for work in works.values():
        for _ in range(3):
            if _milliseconds(work, device) > 1e3:
                break
    rounds = [[_milliseconds(work, device) for work in works.values()] for _ in range(runs)]
    return dict(zip(works, map(statistics.median, zip(*rounds, strict=True)), strict=True))


def cpu_ms(works: Mapping[str, Work], runs: int = 20) -> dict[str, float]:
    """Median milliseconds of CPU time of each work, called in turn, after three calls of each.

    A busy machine lengthens it less than the time that passes.
    """
    for work in works.values():
        for _ in range(3):
            work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            begin = time.process_time()
            work()
            times[name].append(1e3 * (time.process_time() - begin))
    return {name: statistics.median(each) for name, each in times.items()}


def _milliseconds(work: Work, device: torch.device) -> float:
    """Wall time of one call; on a GPU the time between two events around it."""
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end)
    begin = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begin)


def peak_memory_mb(work: Work, device: torch.device) -> float | None:
    """Peak memory in MB that one call adds: of PyTorch's allocator on a GPU, else of the process.

    The resident set of the process is reset after free memory was returned to the system; None
    outside Linux.
    """
    work()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6
    if not sys.platform.startswith("linux"):
        return None
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_resident_bytes()
    work()
    return (_peak_resident_bytes() - before) / 1e6


def _peak_resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

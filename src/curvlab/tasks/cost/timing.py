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
"""Bytes of a megabyte in FPS-T, whose GCN needs little more than one N x N matrix."""


class CostTask(Checked, LightningModule):
    """Mixin for tasks whose test logs `cost` instead of scores.

    Args:
        encoder: the model.
        passes: number of timed calls, after a warm-up.
        **options: options of the task.
    """

    selects_checkpoint = False
    score: str

    def __init__(self, encoder: Encoder, passes: PositiveInt = 20, **options: Any) -> None:
        super().__init__(encoder, **options)
        self.score = type(self).score
        self.passes = passes

    @abstractmethod
    def cost(self, batch: Data) -> dict[str, float]:
        """Measure costs by name; the log has them as `test/NAME`."""

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        """Log nothing: time and memory do not depend on the weights."""

    def test_step(self, batch: Data, batch_idx: int) -> None:
        costs = {f"test/{name}": float(value) for name, value in self.cost(batch).items()}
        self.log_dict(costs, batch_size=1)


def time_and_memory(
    name: str, work: Work, model: nn.Module, graph: Data, passes: int
) -> dict[str, float]:
    """Time and memory of a function.

    `NAME_ms` is the median of milliseconds per call. `NAME_mb`, on Linux alone, is the memory of
    the graph, the weights and the peak of a call in units of 2^20 bytes.
    """
    device = next(model.parameters()).device
    cost = {f"{name}_ms": median_ms({name: work}, device, passes)[name]}
    peak = peak_memory_mb(work, device)
    if peak is not None:
        cost[f"{name}_mb"] = (held_bytes(model, graph) + 1e6 * peak) / MEGABYTE
    return cost


def held_bytes(model: nn.Module, graph: Data) -> int:
    """Bytes of the weights and of the graph's tensors. Sparse tensors count stored entries."""
    weights = dict([*model.named_parameters(), *model.named_buffers()])
    tensors = [*dense_parts(weights).values(), *dense_parts(graph.to_dict()).values()]
    return sum(tensor.nbytes for tensor in tensors)


def median_ms(works: Mapping[str, Work], device: torch.device, runs: int = 20) -> dict[str, float]:
    """Median milliseconds of each function.

    The functions are called in turn, so that a busy machine slows them equally. Before timing, each
    is called three times, or once if a call takes more than a second.
    """
    for work in works.values():
        for _ in range(3):
            if _milliseconds(work, device) > 1e3:
                break
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            times[name].append(_milliseconds(work, device))
    return {name: statistics.median(values) for name, values in times.items()}


def cpu_ms(works: Mapping[str, Work], runs: int = 20) -> dict[str, float]:
    """Median milliseconds of CPU time of each function, called in turn after three calls of each.

    A busy machine affects CPU time less than wall time.
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
    return {name: statistics.median(values) for name, values in times.items()}


def _milliseconds(work: Work, device: torch.device) -> float:
    """Wall time of one call; on a GPU the time between two events."""
    if device.type == "cuda":
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end)
    begin = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begin)


def peak_memory_mb(work: Work, device: torch.device) -> float | None:
    """Peak memory in MB that one call adds; None on a CPU outside Linux.

    On a GPU it is the peak of PyTorch's allocator. On a CPU it is the peak of the process's
    resident set, which is reset after free memory was returned to the system.
    """
    work()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        start = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device)
        return (peak - start) / 1e6
    if not sys.platform.startswith("linux"):
        return None
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    start = _peak_resident_bytes()
    work()
    return (_peak_resident_bytes() - start) / 1e6


def _peak_resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    kilobytes = peak.split()[1]
    return 1024 * int(kilobytes)

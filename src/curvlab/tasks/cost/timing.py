"""Timing and memory of callables on a CPU or a GPU."""

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

Work = Callable[[], Any]


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


def median_ms(works: Mapping[str, Work], device: torch.device, runs: int = 20) -> dict[str, float]:
    """Median milliseconds of each work, called in turn so that a busy machine slows all alike.

    Each is called three times, or once if it takes more than a second, before it is timed.
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


def _peak_resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def peak_memory_mb(work: Work, device: torch.device) -> float | None:
    """Memory in MB that one call needs on top of what is held before it.

    On a GPU the peak of PyTorch's allocator; on Linux the growth of the process's peak resident
    set, which the kernel resets for us after free memory was handed back; elsewhere None.
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

"""The machine: threads, devices and memory of a run."""

import os
import resource
from pathlib import Path

import torch
from hydra.core.hydra_config import HydraConfig

_PROCESS = Path("/proc/self")


def limit_threads(threads: int | None, multirun: bool) -> None:
    """Set the processor threads of this run.

    Args:
        threads: how many; None for all, or a fair share of the cores under a parallel launcher.
        multirun: whether the run is a cell of a sweep.
    """
    if threads is None and multirun:
        jobs = HydraConfig.get().launcher.get("n_jobs", 1)
        threads = max(1, (os.cpu_count() or 1) // jobs) if jobs and jobs > 1 else None
    if threads is not None:
        torch.set_num_threads(threads)


def prepare_device() -> None:
    """Choose this cell's GPU under a parallel launcher, and let tiny numbers be zero.

    Arithmetic with denormal numbers, which `exp(-distance)` makes, is many times slower than
    with others on processors.
    """
    torch.set_flush_denormal(True)
    if torch.cuda.device_count() > 1:
        torch.cuda.set_device(HydraConfig.get().job.get("num", 0) % torch.cuda.device_count())


def reset_peak_memory() -> None:
    """Start anew, where the system can: a sweep runs many cells in one process."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    try:
        (_PROCESS / "clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory_mb() -> float:
    """Megabytes (10^6 bytes) at the peak: the allocator's on a GPU, else the process's resident."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e6
    try:
        lines = (_PROCESS / "status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

"""The machine: threads, devices and memory of a run."""

import re
import resource
from multiprocessing import current_process
from pathlib import Path

import torch

from curvlab.errors import UsageError

_PROCESS = Path("/proc/self")


def prepare_processor(threads: int | None) -> None:
    """Set the processor threads of this run, and let tiny numbers be zero.

    Arithmetic with denormal numbers, which `exp(-distance)` makes, is many times slower than
    with others.

    Args:
        threads: how many; None for all, which under a parallel launcher is the share of the cores
            that joblib gives to each of its processes.
    """
    torch.set_flush_denormal(True)
    if threads is not None:
        torch.set_num_threads(threads)


def trainer_devices(accelerator: str) -> int | list[int]:
    """What Lightning's trainer is to use: one device, of several GPUs the one of this process.

    The processes of a parallel launcher are numbered from 1, so that each has a GPU of its own for
    all cells that it runs.

    Args:
        accelerator: of Lightning: auto, cpu, cuda, mps.

    Raises:
        UsageError: there is no such device.
    """
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(accelerator, True):
        raise UsageError(
            f"trainer.accelerator={accelerator}: torch {torch.__version__} finds no such device "
            "here; use auto or cpu"
        )
    gpus = torch.cuda.device_count() if accelerator in ("auto", "cuda") else 0
    worker = re.search(r"-(\d+)$", current_process().name)
    return [(int(worker[1]) - 1) % gpus] if gpus and worker else 1


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

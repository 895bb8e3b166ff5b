"""The machine: threads, devices and memory of a run."""

import re
import resource
from multiprocessing import current_process
from pathlib import Path

import torch

from curvlab.errors import UsageError

_PROCESS = Path("/proc/self")


def prepare_processor(threads: int | None, processes: int = 1) -> None:
    """Set the processor threads of this run, and let tiny numbers be zero.

    Arithmetic with denormal numbers, which `exp(-distance)` makes, is many times slower than
    with others.

    Args:
        threads: how many; None for all, which under a parallel launcher is the share of the cores
            that joblib gives to each of its processes.
        processes: of the run, which share all threads where `threads` does not say otherwise.
    """
    torch.set_flush_denormal(True)
    if threads is None and processes > 1:
        threads = max(1, torch.get_num_threads() // processes)
    if threads is not None:
        torch.set_num_threads(threads)


def trainer_devices(accelerator: str, devices: int = 1) -> int | list[int]:
    """What Lightning's trainer is to use: one device, of several GPUs the one of this process.

    The processes of a parallel launcher are numbered from 1, so that each has a GPU of its own for
    all cells that it runs.

    Args:
        accelerator: of Lightning: auto, cpu, cuda, mps.
        devices: of the run; several are numbered by its processes.

    Raises:
        UsageError: there is no such device, or there are not so many.
    """
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(accelerator, True):
        raise UsageError(
            f"trainer.accelerator={accelerator}: torch {torch.__version__} finds no such device "
            "here; use auto or cpu"
        )
    gpus = torch.cuda.device_count() if accelerator in ("auto", "cuda") else 0
    if devices > 1:
        if gpus and devices > gpus:
            raise UsageError(
                f"trainer.devices={devices}: there are only {gpus} GPUs here; use as many, or "
                "trainer.accelerator=cpu"
            )
        if run_device(accelerator).type == "mps":
            raise UsageError("trainer.devices: Metal has one device; use trainer.accelerator=cpu")
        return devices
    worker = re.search(r"-(\d+)$", current_process().name)
    return [(int(worker[1]) - 1) % gpus] if gpus and worker else 1


def run_device(accelerator: str) -> torch.device:
    """The kind of device that Lightning's trainer will use.

    Args:
        accelerator: of Lightning: auto, cpu, cuda, mps.
    """
    if accelerator != "auto":
        return torch.device(accelerator)
    kinds = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return torch.device(next((kind for kind, there in kinds.items() if there), "cpu"))


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

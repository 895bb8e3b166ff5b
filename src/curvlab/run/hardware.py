"""Threads, devices and memory of a run."""

import ctypes
import os
import platform
import re
import resource
from contextlib import suppress
from multiprocessing import current_process
from pathlib import Path

import torch

from curvlab.errors import UsageError
from curvlab.process import DOUBLE

_PROCESS = Path("/proc/self")
# Parameters of malloc.h: the free memory at the end of the heap from which it is returned to the
# system (-1: never), and the largest number of arrays that are mapped one by one.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def prepare_process(threads: int | None, device: torch.device, processes: int = 1) -> None:
    """Set the threads of a run, flush denormals to zero, keep freed memory, and reset its peak.

    On CPU, torch then adds in a fixed order: equal numbers of threads give equal bits.
    """
    torch.set_flush_denormal(True)  # `exp(-distance)` makes denormals, which are slow
    if platform.libc_ver()[0] == "glibc":  # halves a step of Hypformer on 316,228 nodes
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)
        libc.mallopt(_M_MMAP_MAX, 0)
    if threads is None and processes > 1:
        threads = max(1, torch.get_num_threads() // processes)
    if threads is not None:
        torch.set_num_threads(threads)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts
    torch.use_deterministic_algorithms(device.type == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # resets the peak, since a sweep runs many cells in one process
        (_PROCESS / "clear_refs").write_text("5", encoding="ascii")


def choose_device(accelerator: str, precision: str = "32-true") -> torch.device:
    """Choose the kind of device of a run; Metal has no double precision.

    Raises:
        UsageError: this machine has no such device, or the device lacks the precision.
    """
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.insert(0, "mps")
    if torch.cuda.is_available():
        available.insert(0, "cuda")
    kind = accelerator
    if accelerator == "auto" or (accelerator == "gpu" and available != ["cpu"]):
        kind = available[0]
    if kind not in available:
        raise UsageError(
            f"trainer.accelerator={accelerator}: torch {torch.__version__} finds no such device "
            "here; use auto or cpu"
        )
    if kind == "mps" and precision == DOUBLE:
        if accelerator != "auto":
            raise UsageError(
                f"trainer.precision={precision}: Metal computes in single precision alone; use "
                "trainer.accelerator=cpu, or trainer.precision=32-true"
            )
        kind = "cpu"
    return torch.device(kind)


def trainer_devices(device: torch.device, number: int = 1) -> int | list[int]:
    """Devices of Lightning's trainer: one GPU for each process of a launcher."""
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    if number > 1 or gpus < 2:
        return number
    worker = re.search(r"-(\d+)$", current_process().name)
    return [(int(worker[1]) - 1) % gpus if worker else 0]


def peak_memory_mb() -> float:
    """Peak memory in megabytes (10^6 bytes): allocated on a GPU, else resident in the process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e6
    try:
        lines = (_PROCESS / "status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

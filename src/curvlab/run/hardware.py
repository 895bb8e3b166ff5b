"""The machine: threads, devices and memory of a run."""

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
# Of malloc.h: how much free memory at the heap's end goes back to the system (-1: none), and how
# many arrays may have memory of their own from it.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def prepare_process(threads: int | None, accelerator: str, processes: int = 1) -> None:
    """Set the threads of a run, flush denormals to zero, keep freed memory, and reset its peak.

    On a processor torch sums in one order: equal numbers of threads give equal bits.
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
    torch.use_deterministic_algorithms(run_device(accelerator).type == "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # where the system can: a sweep runs many cells in one process
        (_PROCESS / "clear_refs").write_text("5", encoding="ascii")


def trainer_accelerator(accelerator: str, precision: str) -> str:
    """Accelerator of Lightning's trainer; Metal has no double precision."""
    if precision != DOUBLE or run_device(accelerator).type != "mps":
        return accelerator
    if accelerator != "auto":
        raise UsageError(
            f"trainer.precision={precision}: Metal computes in single precision alone; use "
            "trainer.accelerator=cpu, or trainer.precision=32-true"
        )
    return "cpu"


def trainer_devices(accelerator: str, devices: int = 1) -> int | list[int]:
    """Devices of Lightning's trainer: one GPU per process of a launcher."""
    gpus = torch.cuda.device_count() if accelerator in ("auto", "gpu", "cuda") else 0
    if devices > 1 or gpus < 2:
        return devices
    worker = re.search(r"-(\d+)$", current_process().name)
    return [(int(worker[1]) - 1) % gpus if worker else 0]


def run_device(accelerator: str) -> torch.device:
    """The kind of device that Lightning's trainer will use."""
    kinds = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    found = next((kind for kind, there in kinds.items() if there), "cpu")
    if not {**kinds, "gpu": found != "cpu"}.get(accelerator, True):
        raise UsageError(
            f"trainer.accelerator={accelerator}: torch {torch.__version__} finds no such device "
            "here; use auto or cpu"
        )
    return torch.device(found if accelerator in ("auto", "gpu") else accelerator)


def peak_memory_mb() -> float:
    """Megabytes (10^6 bytes) at the peak: the allocator's on a GPU, else the process's resident."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e6
    try:
        lines = (_PROCESS / "status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6

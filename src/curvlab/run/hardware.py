"""The machine: threads, devices and memory of a run."""

import atexit
import ctypes
import getpass
import os
import platform
import resource
import tempfile
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import torch

from curvlab.errors import UsageError
from curvlab.process import DOUBLE
from curvlab.results.leases import SUFFIX, HeldError, take

_PROCESS = Path("/proc/self")
# Of malloc.h: how much free memory at the heap's end goes back to the system (-1: none), and how
# many arrays may have memory of their own from it.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
# Of cuBLAS, by whose documentation its results repeat with this setting.
_CUBLAS, _WORKSPACE = "CUBLAS_WORKSPACE_CONFIG", ":4096:8"


def prepare_processor(threads: int | None, processes: int = 1) -> None:
    """Set the processor threads of this run, let tiny numbers be zero, and keep freed memory.

    Arithmetic with denormal numbers, which `exp(-distance)` makes, is many times slower than
    with others. So is writing to an array that is fresh from the system, as by default every one of
    more than 32 MB is. Where the allocator keeps what is freed (glibc; elsewhere nothing changes) a
    step of Hypformer on a graph of 316,228 nodes takes half the time, and 1.7 times the memory,
    since arrays of other sizes do not fill the gaps.

    Args:
        threads: how many; None for all, which in a worker of a sweep is its share of the cores.
        processes: of the run, which share all threads where `threads` does not say otherwise.
    """
    torch.set_flush_denormal(True)
    _keep_freed_memory()
    if threads is None and processes > 1:
        threads = max(1, torch.get_num_threads() // processes)
    if threads is not None:
        torch.set_num_threads(threads)


def prepare_determinism(asked: bool | None, accelerator: str) -> bool:
    """Let torch take kernels whose sums have one order, where that is wanted; whether it does.

    Equal numbers of threads then give equal bits. Lightning leaves this alone by default.

    Args:
        asked: True or False; None for yes on a processor, where nothing is slower, else no.
        accelerator: of Lightning: auto, cpu, cuda, mps.

    Raises:
        UsageError: an earlier run of this process has started CUDA, which reads its settings then.
    """
    device = run_device(accelerator).type
    wanted = device == "cpu" if asked is None else asked
    if wanted and device == "cuda" and _CUBLAS not in os.environ:
        if torch.cuda.is_initialized():
            raise UsageError(
                "trainer.deterministic=true: CUDA has started without it in this process; give it "
                f"to all runs of a sweep, or set {_CUBLAS}={_WORKSPACE} before the command"
            )
        os.environ[_CUBLAS] = _WORKSPACE
    torch.use_deterministic_algorithms(wanted)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return wanted


def _keep_freed_memory() -> None:
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_TRIM_THRESHOLD, -1)
    libc.mallopt(_M_MMAP_MAX, 0)


def trainer_accelerator(accelerator: str, precision: str) -> str:
    """What Lightning's trainer is to use: Metal has no double precision, the processor has.

    Args:
        accelerator: of Lightning: auto, cpu, cuda, mps.
        precision: of Lightning.

    Raises:
        UsageError: Metal is asked for with double precision.
    """
    if precision != DOUBLE or run_device(accelerator).type != "mps":
        return accelerator
    if accelerator == "mps":
        raise UsageError(
            f"trainer.precision={precision}: Metal computes in single precision alone; use "
            "trainer.accelerator=cpu, or trainer.precision=32-true"
        )
    return "cpu"


def trainer_devices(accelerator: str, devices: int = 1) -> int | list[int]:
    """What Lightning's trainer is to use: one device, of several GPUs the one of this process.

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
    return [own_gpu(gpus)] if gpus > 1 else 1


def check_sync_batch_norm(wanted: bool, accelerator: str) -> None:
    """Refuse to normalise by the batches of several devices where PyTorch cannot.

    Args:
        wanted: `trainer.sync_batch_norm` of a run on several devices.
        accelerator: of Lightning: auto, cpu, cuda, mps.

    Raises:
        UsageError: the devices are processes of the processor.
    """
    if wanted and run_device(accelerator).type != "cuda":
        raise UsageError(
            "trainer.sync_batch_norm=true: PyTorch normalises by the batches of several GPUs "
            "alone, not of processes on a processor; leave it out, or use "
            "trainer.accelerator=cuda"
        )


@cache
def own_gpu(gpus: int) -> int:
    """The GPU that this process has until its end: one that fewest others on this machine have.

    Args:
        gpus: how many it sees.
    """
    folder = Path(tempfile.gettempdir(), f"curvlab-{getpass.getuser()}", "gpus")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = seen if len(seen) == gpus else [str(number) for number in range(gpus)]
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for turn, (number, name) in ((t, named) for t in count() for named in enumerate(names)):
            with suppress(HeldError):
                lease = take(folder / f"{name.strip().replace('/', '_')}-{turn}{SUFFIX}")
                atexit.register(lease.release)
                return number
    return 0


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

"""Required and free memory."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from curvlab.errors import UsageError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


class PeakBytes(TorchDispatchMode):
    """Counts the bytes of dense tensors that the block creates.

    Attributes:
        peak: largest number of bytes at a time.
    """

    peak = 0
    _current = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        inputs = {id(storage) for storage in _storages((args, kwargs))}
        for storage in _storages(out):
            if id(storage) not in inputs:  # neither a view nor changed in place
                self._current += storage.nbytes()
                weakref.finalize(storage, self._subtract, storage.nbytes())
        self.peak = max(self.peak, self._current)
        return out

    def _subtract(self, size: int) -> None:
        self._current -= size


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    leaves = tree_leaves(tree)
    dense = [x for x in leaves if isinstance(x, Tensor) and x.layout == torch.strided]
    return [tensor.untyped_storage() for tensor in dense]


def free_memory() -> int:
    """Bytes that this process can allocate: of the machine, its container, and its own limit."""
    free = psutil.virtual_memory().available
    for limit, usage in (*cgroup_limits(), *_address_space()):
        free = min(free, limit - usage)
    return max(0, free)


def cgroup_limits(root: Path = Path("/")) -> Iterator[tuple[int, int]]:
    """Limits of the process's control groups (versions 1 and 2) and the bytes in use.

    Pages of files that the kernel would drop do not count. All groups above the named group are
    read, the root included, since a container may see its own group as the root.

    Args:
        root: folder with `proc` and `sys`.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            mount = "sys/fs/cgroup"
            limit_file = "memory.max"
            usage_file = "memory.current"
        elif "memory" in controllers.split(","):
            mount = "sys/fs/cgroup/memory"
            limit_file = "memory.limit_in_bytes"
            usage_file = "memory.usage_in_bytes"
        else:
            continue
        group = Path(name.lstrip("/"))
        for folder in (group, *group.parents):
            group_folder = root / mount / folder
            try:
                limit = int((group_folder / limit_file).read_text())
                usage = int((group_folder / usage_file).read_text())
            except (OSError, ValueError):  # no such group here, or the limit is "max"
                continue
            yield limit, max(0, usage - _droppable(group_folder / "memory.stat"))


def _droppable(statistics: Path) -> int:
    """Bytes of file pages in the kernel's inactive list."""
    try:
        pairs = (line.split() for line in statistics.read_text().splitlines())
        sizes = {name: int(value) for name, value in pairs}
    except (OSError, ValueError):
        return 0
    return sizes.get("total_inactive_file", sizes.get("inactive_file", 0))


def _address_space() -> Iterator[tuple[int, int]]:
    """The limit of the process's address space (`ulimit -v`) and its size."""
    if resource is None:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield limit, psutil.Process().memory_info().vms


def check_memory(subject: str, required: float, device: torch.device, remedy: str) -> None:
    """Refuse work that needs more bytes than a device has free."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = free_memory()
    if required > free:
        raise UsageError(
            f"{subject} needs at least {required / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
            f"{remedy}"
        )

"""The memory that work needs, and what is free."""

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
    """Counts the bytes of dense tensors that are made within the block.

    Attributes:
        peak: the most that they hold at a time.
    """

    peak = _now = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {id(storage) for storage in _storages((args, kwargs))}
        for storage in _storages(out):
            if id(storage) not in given:  # neither a view nor changed in place
                self._now += storage.nbytes()
                weakref.finalize(storage, self._freed, storage.nbytes())
        self.peak = max(self.peak, self._now)
        return out

    def _freed(self, size: int) -> None:
        self._now -= size


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    leaves = tree_leaves(tree)
    dense = [x for x in leaves if isinstance(x, Tensor) and x.layout == torch.strided]
    return [tensor.untyped_storage() for tensor in dense]


def free_memory() -> int:
    """Bytes that this process can still have: of the machine, its container, and its own limit."""
    free = psutil.virtual_memory().available
    for limit, used in (*cgroup_limits(), *_address_space()):
        free = min(free, limit - used)
    return max(0, free)


def cgroup_limits(root: Path = Path("/")) -> Iterator[tuple[int, int]]:
    """Limits of the process's control groups (versions 1 and 2) and the bytes in use.

    Pages of files that the kernel would drop do not count. A container may see its own group as
    the root, so that all groups above the named one are read, the root included.

    Args:
        root: folder with `proc` and `sys`.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers == "":
            mount = "sys/fs/cgroup"
            limit = "memory.max"
            used = "memory.current"
        elif "memory" in controllers.split(","):
            mount = "sys/fs/cgroup/memory"
            limit = "memory.limit_in_bytes"
            used = "memory.usage_in_bytes"
        else:
            continue
        group = Path(name.lstrip("/"))
        for folder in (group, *group.parents):
            try:
                place = root / mount / folder
                most, now = (int((place / file).read_text()) for file in (limit, used))
            except (OSError, ValueError):  # no such group here, or the limit is "max"
                continue
            yield most, max(0, now - _droppable(place / "memory.stat"))


def _droppable(statistics: Path) -> int:
    """Bytes of file pages that have not been used lately."""
    try:
        pairs = (line.split() for line in statistics.read_text().splitlines())
        bytes_by_name = {name: int(value) for name, value in pairs}
    except (OSError, ValueError):
        return 0
    return bytes_by_name.get("total_inactive_file", bytes_by_name.get("inactive_file", 0))


def _address_space() -> Iterator[tuple[int, int]]:
    """The limit of the process's address space (`ulimit -v`) and what it has."""
    if resource is None:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield limit, psutil.Process().memory_info().vms


def check_memory(what: str, needed: float, device: torch.device, remedy: str) -> None:
    """Refuse work that needs more bytes than a device has free."""
    on_gpu = device.type == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if on_gpu else free_memory()
    if needed > free:
        raise UsageError(
            f"{what} needs at least {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
            f"{remedy}"
        )

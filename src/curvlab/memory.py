"""The memory that work needs, and what is free."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from curvlab.errors import UsageError


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


def check_memory(what: str, needed: float, device: torch.device, remedy: str) -> None:
    """Refuse work that needs more bytes than a device has free."""
    on_gpu = device.type == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if on_gpu else psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{what} needs at least {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
            f"{remedy}"
        )

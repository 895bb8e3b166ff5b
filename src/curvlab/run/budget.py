"""Models that could not be trained here, refused before they take the memory they do not have."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import psutil
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

from curvlab.errors import UsageError

COPIES = 2
"""Of every weight: itself and its gradient, whatever the optimiser."""

MOST_WEIGHTS = 10_000
"""Arrays of weights; thousands of layers overflow in single precision and take hours a step."""


@contextmanager
def within_memory(name: str, device: torch.device) -> Iterator[None]:
    """Build a model within the block, if its weights and their gradients fit in memory.

    Args:
        name: of the model.
        device: that it is trained on; it is built in the processor's memory.

    Raises:
        UsageError: they do not; the array that is too much is not made.
    """
    budget = _Budget(name, _memory(device))
    hook = register_module_parameter_registration_hook(budget.count)
    try:
        with budget:
            yield
    finally:
        hook.remove()


def _memory(device: torch.device) -> int:
    """Bytes of the machine, or of its GPU where that has less."""
    total = int(psutil.virtual_memory().total)
    if device.type == "cuda":
        total = min(total, torch.cuda.get_device_properties(device).total_memory)
    return total


class _Budget(TorchDispatchMode):
    """Looks at the size of every array before it is made."""

    def __init__(self, name: str, memory: int) -> None:
        super().__init__()
        self.name = name
        self.memory = memory
        self.seen: set[int] = set()  # weights that modules have by now
        self.bytes = 0  # of them

    def count(self, module: nn.Module, name: str, weight: nn.Parameter | None) -> None:  # noqa: ARG002
        """Note what a module has got; a hook of torch."""
        if weight is not None and id(weight) not in self.seen:
            self.seen.add(id(weight))
            self.bytes += weight.nbytes
        if len(self.seen) > MOST_WEIGHTS:
            raise UsageError(
                f"model={self.name} would have more than {MOST_WEIGHTS:,} arrays of weights, too "
                "many for a step to end: give it fewer layers"
            )

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Refuse an array that is too large, else make it."""
        options = kwargs or {}
        arguments = func._schema.arguments  # type: ignore[attr-defined]
        if arguments and arguments[0].name == "size" and args:
            width = (options.get("dtype") or torch.get_default_dtype()).itemsize
            asked = prod(map(int, args[0])) * width
            needed = COPIES * (self.bytes + asked)
            if needed > self.memory:
                raise UsageError(
                    f"model={self.name} needs at least {needed / 1e9:,.1f} GB for its weights and "
                    f"their gradients, and there are {self.memory / 1e9:,.1f} GB: make it narrower"
                )
        return func(*args, **options)

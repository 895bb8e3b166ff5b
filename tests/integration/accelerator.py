"""A processor that passes for an accelerator and tells what one would have to wait for."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode

ACCELERATOR = torch.device("cuda", 0)
PROCESSOR = torch.device("cpu")
READS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
COPIES = (Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.__array__)


@contextmanager
def passing_for_an_accelerator() -> Iterator[list[str]]:
    """Let every tensor say that it is on a GPU, and list what waits for it or is not there.

    Kernels run on the processor as ever, but code that asks where a tensor is takes the way of an
    accelerator. Listed, with the place: values and shapes that are read, masks as indices, copies
    between the two, and tensors made without a device, which would be on the processor.
    """
    found: list[str] = []
    # A generator is made where its numbers are drawn, which no mode sees. An overridden `backward`
    # or `grad` would turn the mode off for the functions of this project that it calls.
    generators = patch("torch.Generator", _generator)
    gradients = patch("torch.autograd.has_torch_function", return_value=False)
    with _Reads(found), _Places(found), generators, gradients:
        yield found


def _generator(_: torch.device, made: type[torch.Generator] = torch.Generator) -> torch.Generator:
    return made(PROCESSOR)


class _Places(TorchFunctionMode):
    """Lets tensors be on the accelerator, in words."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:
            return ACCELERATOR
        if func is Tensor.backward:
            kwargs["grad_tensors"] = kwargs.pop("gradient", None)
            with self:  # within this method the mode is off
                return torch.autograd.backward(*args, **kwargs)
        to_processor = func is Tensor.to and any(a == "cpu" for a in args[1:] if isinstance(a, str))
        if func in COPIES or to_processor:
            self.found.append(f"{func.__name__}: {_place()}")
        elif func is torch.tensor:
            self.found.append(f"numbers made a tensor: {_place()}")
        elif (
            func in _device_constructors()
            and kwargs.get("device") is None
            and not any(isinstance(a, Tensor) for a in args)
        ):
            self.found.append(f"{func.__name__} on the processor: {_place()}")
        if kwargs.get("device") is not None:
            kwargs["device"] = PROCESSOR
        args = [PROCESSOR if isinstance(a, torch.device) else a for a in args]
        return func(*args, **kwargs)


class _Reads(TorchDispatchMode):
    """Lists operations whose result, or its shape, depends on values."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        if "index" in name:
            chosen = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
            if any(isinstance(i, Tensor) and i.dtype is torch.bool for i in chosen):
                self.found.append(f"{name} by a mask: {_place()}")
        elif name == "equal" or (
            any(tag in func.tags for tag in READS) and not (kwargs or {}).get("output_size")
        ):
            self.found.append(f"{name}: {_place()}")
        return func(*args, **(kwargs or {}))


def _place() -> str:
    """The innermost line of this project or of a library that is not torch."""
    frames = [f for f in traceback.extract_stack() if "/torch/" not in f.filename]
    frame = next(f for f in reversed(frames) if Path(f.filename) != Path(__file__))
    return f"{Path(frame.filename).name}:{frame.lineno} {frame.line}"

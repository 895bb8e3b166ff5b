"""`torch.compile` where it pays: modules that opt in are compiled in place."""

import warnings
from typing import Any

import torch
from torch import nn

from curvlab.errors import UsageError

# Random numbers are the same as without compilation, so that a seed gives the same dropout.
# A product and a sum become one instruction where the processor has it, as in compiled libraries.
_OPTIONS = {"fallback_random": True, "cpp.enable_floating_point_contract_flag": "fast"}


class Compilable(nn.Module):
    """A module of many small operations, which compilation fuses."""

    dynamic: bool | None = None  # False: one compiled function per shape of the inputs
    on_gpu: bool = True  # whether the module is compiled on GPUs, too

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile in place; arguments are those of `torch.compile`."""
        defaults = {"dynamic": self.dynamic, "options": _OPTIONS}
        super().compile(*args, **{**defaults, **kwargs})


def compile_parts(module: nn.Module, device: torch.device) -> None:
    """Compile the `Compilable` parts of a module for a device."""
    torch.compiler.reset()
    _check_compiler(device)
    # Dynamo reads `grad` of tensors that are attributes of an object, such as `Points`.
    warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
    on_cpu = device.type == "cpu"
    for part in module.modules():
        if isinstance(part, Compilable) and (on_cpu or part.on_gpu):
            part.compile()


def _check_compiler(device: torch.device) -> None:
    """Compile and run a small function; refuse a machine without a working compiler."""
    try:
        function = torch.compile(lambda x: x.exp() + 1)
        function(torch.zeros(8, device=device))
    except Exception as error:
        tool = "C++ compiler" if device.type == "cpu" else "C++ compiler or Triton"
        raise UsageError(
            f"trainer.compile=true: torch finds no working {tool} for {device.type}; install a "
            "compiler (on Debian apt install g++ python3-dev), name it in CXX, or use "
            "trainer.compile=false"
        ) from error

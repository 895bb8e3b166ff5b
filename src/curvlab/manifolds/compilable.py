"""Modules that are worth compiling as a whole."""

from typing import Any

from torch import nn

# Random numbers are drawn as without compilation, so that the same seed gives the same dropout; a
# product and a sum become one instruction where the processor has it, as in compiled libraries.
_OPTIONS = {"fallback_random": True, "cpp.enable_floating_point_contract_flag": "fast"}


class Compilable(nn.Module):
    """A module of many small operations that become few when it is compiled as a whole.

    Attributes:
        dynamic: False for one compiled function a shape of the inputs; None for one that takes all
            shapes, from the second one on.
        compiled: whether it has been compiled.
    """

    dynamic: bool | None = None
    compiled = False

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile in place; arguments are those of `torch.compile`."""
        self.compiled = True
        super().compile(*args, **{"dynamic": self.dynamic, "options": _OPTIONS, **kwargs})

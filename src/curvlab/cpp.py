"""C++ forms of some functions, compiled once for this processor, next to their plain forms.

They compute training steps on a processor with a C++ compiler, and agree with the plain forms to
rounding in float32. Evaluation uses the plain forms, and so do forward-mode derivatives, `vmap`,
`torch.compile` and machines without a compiler. Torch keeps compiled libraries in a cache.
"""

import ctypes
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

log = logging.getLogger(__name__)

Kernels = Literal["auto", "plain"]

ARRAY: Any = ctypes.c_void_p
INTEGER: Any = ctypes.c_int64
REAL: Any = ctypes.c_float
DOUBLE: Any = ctypes.c_double

_HEADER = Path(__file__).with_name("float_functions.h")
"""Functions for all sources."""

_VECTORISED = (
    "-ftree-loop-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
)


class _State:
    """What this process does with C++ forms."""

    kernels: Kernels = "auto"
    failed = False
    used = False


def choose_kernels(kernels: Kernels) -> None:
    """Choose the forms from here on: `auto` takes C++ forms where a compiler works."""
    _State.kernels = kernels
    _State.used = False


@contextmanager
def chosen_kernels(kernels: Kernels) -> Iterator[None]:
    """Choose the forms within the block."""
    before = _State.kernels, _State.used
    choose_kernels(kernels)
    try:
        yield
    finally:
        _State.kernels, _State.used = before


def kernels_used() -> Literal["C++", "plain"]:
    """Whether a C++ form was called since the last choice."""
    return "C++" if _State.used else "plain"


class Library:
    """Functions of a C++ file, which is compiled when a training first calls one.

    Args:
        source: the file.
        signatures: argument types of each function.
        dtypes: types of inputs that the functions take.
    """

    def __init__(
        self,
        source: Path,
        signatures: Mapping[str, Sequence[Any]],
        dtypes: Collection[torch.dtype] = (torch.float32,),
    ) -> None:
        self.source = source
        self.signatures = signatures
        self.dtypes = dtypes
        self._functions: ctypes.CDLL | None = None

    def functions(self, *inputs: Tensor) -> ctypes.CDLL | None:
        """The functions for a training step on these inputs; None where plain forms compute it."""
        if torch.compiler.is_compiling() or _State.kernels == "plain" or _State.failed:
            return None
        if not _trains(inputs, self.dtypes):
            return None
        if self._functions is None:
            self._load()
        _State.used |= self._functions is not None
        return self._functions

    def _load(self) -> None:
        try:
            from torch._inductor.codecache import CppCodeCache

            files = _HEADER, self.source
            text = "".join(file.read_text(encoding="utf-8") for file in files)
            functions = CppCodeCache.load(text, "cpu", extra_flags=_VECTORISED)
            for name, types in self.signatures.items():
                getattr(functions, name).argtypes = list(types)
                getattr(functions, name).restype = INTEGER
        except Exception as error:  # a compiler fails in many ways, none of which ends a run
            _State.failed = True
            log.warning(
                "no working C++ compiler (%s): training computes with the plain kernels, which "
                "takes longer; install one (on Debian apt install g++) or set CXX",
                type(error).__name__,
            )
        else:
            self._functions = functions


def _trains(inputs: Sequence[Tensor], dtypes: Collection[torch.dtype]) -> bool:
    """Whether plain reverse mode records a derivative of tensors of these types on a processor."""
    return (
        torch.is_grad_enabled()
        and any(x.requires_grad for x in inputs)
        and all(x.dtype in dtypes and x.device.type == "cpu" for x in inputs)
        and torch.autograd.forward_ad._current_level < 0
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def pointers(*arrays: Tensor | None) -> list[int | None]:
    """Addresses of arrays, which the caller keeps until a function has returned."""
    return [None if array is None else array.data_ptr() for array in arrays]


def differentiate_plain(
    ctx: Any,
    plain: Callable[..., Any],
    grads: tuple[Tensor, ...],
    needs: Sequence[bool] | None = None,
) -> list[Tensor | None]:
    """Gradients of the saved inputs of a plain form, which can be differentiated once more.

    The context of the autograd function has saved its differentiable inputs first, `ctx.inputs` of
    them; `needs` says which gradients are asked for, by default of the first arguments.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases: an input may depend on another one, as points do on the curvature.
        inputs = [x.view_as(x) for x in ctx.saved_tensors[: ctx.inputs]]
        needs = (needs or ctx.needs_input_grad)[: ctx.inputs]
        needed = [x for x, need in zip(inputs, needs, strict=True) if need]
        outputs = plain(*inputs)
        gradients = iter(torch.autograd.grad(outputs, needed, grads, create_graph=again))
    return [next(gradients) if need else None for need in needs]

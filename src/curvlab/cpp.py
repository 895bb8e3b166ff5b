"""C++ forms of some functions, compiled once for this processor, next to their plain forms.

C++ forms compute training steps on a CPU with a C++ compiler. They agree with the plain forms to
rounding in float32. Evaluation uses the plain forms, and so do forward-mode derivatives, `vmap`,
`torch.compile` and machines without a compiler. Torch caches compiled libraries.
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
    """This process's use of C++ forms."""

    kernels: Kernels = "auto"
    failed = False
    called = False


def choose_kernels(kernels: Kernels) -> None:
    """Choose the forms from now on: `auto` uses C++ forms where a compiler works."""
    _State.kernels = kernels
    _State.called = False


@contextmanager
def use_kernels(kernels: Kernels) -> Iterator[None]:
    """Choose the forms within the block."""
    previous = _State.kernels, _State.called
    choose_kernels(kernels)
    try:
        yield
    finally:
        _State.kernels, _State.called = previous


def kernel_kind() -> Literal["C++", "plain"]:
    """The forms of this process: C++ if a C++ form was called since the last choice."""
    return "C++" if _State.called else "plain"


class Library:
    """Functions of a C++ file, compiled at the first call during training.

    Args:
        source: the file.
        signatures: argument types of each function.
        dtypes: types of inputs that the functions accept.
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
        """The functions, if C++ forms compute a training step on these inputs; else None."""
        if torch.compiler.is_compiling() or _State.kernels == "plain" or _State.failed:
            return None
        if not _trains(inputs, self.dtypes):
            return None
        if self._functions is None:
            self._load()
        _State.called |= self._functions is not None
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
        except Exception as error:  # no failure of a compiler ends a run
            _State.failed = True
            log.warning(
                "no working C++ compiler (%s): training computes with the plain kernels, which "
                "takes longer; install one (on Debian apt install g++) or set CXX",
                type(error).__name__,
            )
        else:
            self._functions = functions


def _trains(inputs: Sequence[Tensor], dtypes: Collection[torch.dtype]) -> bool:
    """Whether plain reverse mode records a derivative of tensors of these types on a CPU."""
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in inputs):
        return False
    has_forward_mode = torch.autograd.forward_ad._current_level >= 0
    has_transform = torch._C._functorch.peek_interpreter_stack() is not None
    if has_forward_mode or has_transform:
        return False
    return all(x.dtype in dtypes and x.device.type == "cpu" for x in inputs)


def pointers(*arrays: Tensor | None) -> list[int | None]:
    """Addresses of arrays; the caller keeps the arrays until the function has returned."""
    return [None if array is None else array.data_ptr() for array in arrays]


def differentiate_plain(
    ctx: Any,
    plain: Callable[..., Any],
    grads: tuple[Tensor, ...],
    needs: Sequence[bool] | None = None,
) -> list[Tensor | None]:
    """Gradients of a plain form's saved inputs, which can be differentiated once more.

    The first `ctx.inputs` saved tensors are the differentiable inputs. `needs` says which of their
    gradients are required, by default `ctx.needs_input_grad`.
    """
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases: an input may depend on another one, as points do on the curvature.
        inputs = [x.view_as(x) for x in ctx.saved_tensors[: ctx.inputs]]
        needs = (needs or ctx.needs_input_grad)[: ctx.inputs]
        required = [x for x, need in zip(inputs, needs, strict=True) if need]
        outputs = plain(*inputs)
        results = torch.autograd.grad(outputs, required, grads, create_graph=create_graph)
    gradients = iter(results)
    return [next(gradients) if need else None for need in needs]

"""Matrix products whose differences cancel, in the full precision of their type.

`|x - y|^2` as `|x|^2 + |y|^2 - 2 <x, y>`, a Lorentzian product of points far out, the side of a
hyperplane on which a point lies: each is the small difference of large terms. A product whose
factors are rounded to 10 bits, as TF32 does, or to 8, as autocast does, leaves only noise of it.
These products are therefore excepted from `torch.set_float32_matmul_precision` and from autocast.
Averages, linear maps and attention scores are not: they are as right as their factors.

Without either setting, which is PyTorch's default, the products here are PyTorch's own. Compiled
code keeps the precision with which it is called.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds.kernels import upcast_half

# Each has a precision of its own since torch 2.9, which then refuses to name one of all.
_BACKENDS: list[Any] = [
    backend
    for backend in (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
    if hasattr(backend, "fp32_precision")
]


class _Precision(NamedTuple):
    """The precision of float32 products: for all, or None, and for each backend."""

    overall: str | None
    each: list[str]

    def choose(self) -> None:
        """Choose it."""
        if self.overall is not None:
            torch.set_float32_matmul_precision(self.overall)
        for backend, precision in zip(_BACKENDS, self.each, strict=True):
            backend.fp32_precision = precision


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products of float32 without TF32 as long as it is open."""
    chosen = None if torch.compiler.is_compiling() else _reduced()
    if chosen is None:
        yield
        return
    _Precision(chosen.overall and "highest", ["ieee"] * len(_BACKENDS)).choose()
    try:
        yield
    finally:
        chosen.choose()


def product(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` in the full precision of its type, under autocast in float32; its derivatives too.

    Shapes: `[..., n, k], [..., k, m] -> [..., n, m]`.
    """
    return a @ b if _is_full(a) else _product(a, b)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x W^T + b` as `product` has it, `[..., in] -> [..., out]`."""
    if _is_full(x):
        return F.linear(x, weight, bias)
    out = _product(x, weight.mT)
    return out if bias is None else out + bias


def _is_full(x: Tensor) -> bool:
    """Whether PyTorch's own products are in full precision on this device already."""
    if torch.is_autocast_enabled(x.device.type):
        return False
    return torch.compiler.is_compiling() or _reduced() is None


def _reduced() -> _Precision | None:
    """The precision in force; None if it is full."""
    try:
        overall: str | None = torch.get_float32_matmul_precision()
    except RuntimeError:  # chosen for a backend by itself
        overall = None
    if overall == "highest":
        return None
    return _Precision(overall, [backend.fp32_precision for backend in _BACKENDS])


def _product(a: Tensor, b: Tensor) -> Tensor:
    with torch.autocast(a.device.type, enabled=False):
        out: Tensor = _Product.apply(upcast_half(a), upcast_half(b))
    return out


class _Product(Function):
    """`a @ b`; the derivatives are products of the same kind."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        with full_precision():
            return a @ b

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], _output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (g,) = grads
        a, b = ctx.saved_tensors
        return product(g, b.mT).sum_to_size(a.shape), product(a.mT, g).sum_to_size(b.shape)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        (a_t, b_t), (a, b) = tangents, ctx.saved_tensors
        return product(a_t, b) + product(a, b_t)

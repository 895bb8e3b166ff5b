"""Matrix products whose differences cancel, in the full precision of their type.

`|x - y|^2` as `|x|^2 + |y|^2 - 2 <x, y>`, a Lorentzian product of points far out, the side of a
hyperplane on which a point lies: each is the small difference of large terms. A product whose
factors are rounded to 10 bits, as TF32 does, or to 8, as autocast does, leaves only noise of it.
These products are therefore excepted from `torch.set_float32_matmul_precision` and from autocast.
Averages, linear maps and attention scores are not: they are as right as their factors.

Without either setting, which is PyTorch's default, the products here are PyTorch's own. Compiled
code keeps the precision with which it is called.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds.kernels import upcast_half

# Each has a precision of its own since torch 2.9.
_BACKENDS: list[Any] = [
    backend
    for backend in (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
    if hasattr(backend, "fp32_precision")
]
FULL = {"highest", "ieee", "none"}


def _precisions() -> list[str]:
    """The precision of float32 products, of each backend."""
    each = [backend.fp32_precision for backend in _BACKENDS]
    return each or [torch.get_float32_matmul_precision()]


def _choose(precisions: Sequence[str]) -> None:
    if not _BACKENDS:
        torch.set_float32_matmul_precision(precisions[0])
    for backend, precision in zip(_BACKENDS, precisions, strict=False):
        backend.fp32_precision = precision


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products of float32 without TF32 as long as it is open."""
    chosen = [] if torch.compiler.is_compiling() else _precisions()
    if FULL.issuperset(chosen):
        yield
        return
    _choose(["ieee"] * len(chosen) if _BACKENDS else ["highest"])
    try:
        yield
    finally:
        _choose(chosen)


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
    return torch.compiler.is_compiling() or FULL.issuperset(_precisions())


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

"""Matrix products whose differences cancel, in the full precision of their type.

`|x - y|^2` as `|x|^2 + |y|^2 - 2 <x, y>`, a Lorentzian product of points far out, and the side of a
hyperplane on which a point lies are small differences of large terms. A product whose factors are
rounded to 10 bits, as by TF32, or to 8 bits, as by autocast, leaves only noise. These products are
therefore exempt from `torch.set_float32_matmul_precision` and from autocast. Averages, linear maps
and attention scores are not exempt, since they are as accurate as their factors.

By default, without either setting, the products are PyTorch's. Compiled code keeps the precision
with which it is called.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from curvlab.manifolds.kernels import upcast_half

# Since torch 2.9 each backend has a separate precision.
_BACKENDS: list[Any] = [
    backend
    for backend in (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
    if hasattr(backend, "fp32_precision")
]
FULL = {"highest", "ieee", "none"}


def _precisions() -> list[str]:
    """Precisions of float32 products, one for each backend."""
    precisions = [backend.fp32_precision for backend in _BACKENDS]
    return precisions or [torch.get_float32_matmul_precision()]


def _choose(precisions: Sequence[str]) -> None:
    if not _BACKENDS:
        torch.set_float32_matmul_precision(precisions[0])
    for backend, precision in zip(_BACKENDS, precisions, strict=False):
        backend.fp32_precision = precision


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute matrix products of float32 without TF32 within the block."""
    precisions = [] if torch.compiler.is_compiling() else _precisions()
    if FULL.issuperset(precisions):
        yield
        return
    _choose(["ieee"] * len(precisions) if _BACKENDS else ["highest"])
    try:
        yield
    finally:
        _choose(precisions)


def product(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` in the full precision of its type (float32 under autocast), and so its derivatives.

    Shapes: `[..., n, k], [..., k, m] -> [..., n, m]`.
    """
    return a @ b if _is_full(a) else _product(a, b)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x W^T + b` by `product`, `[..., in] -> [..., out]`."""
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
    """`a @ b`, whose derivatives are also computed by `product`."""

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
        a_t, b_t = tangents
        a, b = ctx.saved_tensors
        return product(a_t, b) + product(a, b_t)

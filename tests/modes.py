"""Modes of torch: TF32 on the processor, whose products round; the largest tensor that is made."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from curvlab.manifolds.matrix_products import FULL, _precisions

# Positions of the factors; what is added is not rounded.
FACTORS = {
    "mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "addmm_": (1, 2), "baddbmm": (1, 2),
    "baddbmm_": (1, 2), "linear": (0, 1), "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
}  # fmt: skip


def ten_bits(x: Tensor) -> Tensor:
    """Float32 rounded to the 10 bits of mantissa that TF32 has, ties to even."""
    if x.dtype != torch.float32 or x.layout != torch.strided:
        return x
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


class _RoundedFactors(TorchDispatchMode):
    """Round the factors of every product, forward and backward; count the products."""

    def __init__(self) -> None:
        super().__init__()
        self.rounded = self.full = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        positions = FACTORS.get(func.overloadpacket.__name__, ())
        if positions and args[positions[0]].dtype == torch.float32:
            if FULL.issuperset(_precisions()):
                self.full += 1
            else:
                self.rounded += 1
                args = tuple(ten_bits(a) if n in positions else a for n, a in enumerate(args))
        return func(*args, **(kwargs or {}))


@contextmanager
def tf32() -> Iterator[_RoundedFactors]:
    """Ask for TF32, and have it."""
    torch.set_float32_matmul_precision("high")
    try:
        with _RoundedFactors() as mode:
            yield mode
    finally:
        torch.set_float32_matmul_precision("highest")


class LargestTensor(TorchDispatchMode):
    """Remembers the number of elements of the largest dense tensor that any operation made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        sizes = [tensor.numel() for tensor in made if tensor.layout == torch.strided]
        self.elements = max(self.elements, *sizes, 0)
        return out

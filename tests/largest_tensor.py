"""What the largest dense tensor is that a piece of code makes."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Remembers the number of elements of the largest dense tensor that any operation made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        sizes = [tensor.numel() for tensor in made if tensor.layout == torch.strided]
        self.elements = max(self.elements, *sizes, 0)
        return out

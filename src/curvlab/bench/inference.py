"""Time and memory of a forward pass."""

from functools import partial

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.bench.timing import median_ms, peak_memory_mb

MEGABYTE = 2**20
"""Bytes, of the megabytes that FPS-T prints (its GCN needs little more than one N x N matrix)."""


@torch.no_grad()
def inference_cost(encoder: nn.Module, graph: Data, passes: int) -> dict[str, float]:
    """Median milliseconds of a forward pass, and the most memory held during one.

    The memory is the graph's, the weights' and what the pass needs on top: on a GPU by PyTorch's
    allocator, on a processor by the growth of the process. Where that cannot be measured (outside
    Linux), there is no `inference_mb`.

    Args:
        encoder: the model.
        graph: prepared, on the model's device.
        passes: forward passes that are timed.

    Returns:
        `inference_ms` and `inference_mb` (of 2^20 bytes).
    """
    device = next(encoder.parameters()).device
    forward = partial(encoder, graph)
    cost = {"inference_ms": median_ms({"forward": forward}, device, passes)["forward"]}
    needed = peak_memory_mb(forward, device)
    if needed is not None:
        cost["inference_mb"] = (held_bytes(encoder, graph) + 1e6 * needed) / MEGABYTE
    return cost


def held_bytes(encoder: nn.Module, graph: Data) -> int:
    """Bytes of the weights and of the graph's tensors, sparse ones by what they store."""
    tensors = [*encoder.parameters(), *encoder.buffers()]
    for value in graph.to_dict().values():
        if isinstance(value, Tensor):
            tensors += _parts(value)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _parts(tensor: Tensor) -> list[Tensor]:
    """A tensor, or the three that a matrix in compressed rows consists of."""
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]

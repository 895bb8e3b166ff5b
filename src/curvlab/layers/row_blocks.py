"""Attention whose scores are computed in blocks of rows."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

BLOCK_ENTRIES = 2**24
"""Number of scores that are held at a time."""


def map_row_blocks(make_rows: Callable[[slice], Tensor], rows: int, row_entries: int) -> Tensor:
    """Results `[heads, rows, width]` of a function of slices of rows, one block at a time.

    Each row has `row_entries` scores over all heads. Blocks are recomputed in the backward pass.
    """
    size = max(1, BLOCK_ENTRIES // max(1, row_entries))
    blocks = [slice(start, start + size) for start in range(0, max(1, rows), size)]
    if len(blocks) == 1 or not torch.is_grad_enabled():
        return torch.cat([make_rows(block) for block in blocks], 1)
    return torch.cat([checkpoint(make_rows, block, use_reentrant=False) for block in blocks], 1)

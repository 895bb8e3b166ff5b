"""Validation nodes in two halves: one for training, one for the choice of weights."""

import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError


class HalvedValidation(GraphTransform):
    """Train on half of the validation nodes; the training nodes become an inner problem's.

    An inner problem learns from `inner_mask` and the outer problem from `train_mask`; the other
    half of the validation nodes selects the weights.

    Source: Franceschi et al. 2019 (LDS), Section 4.1.
    """

    reads = ("train_mask", "val_mask")
    writes = ("inner_mask", "train_mask", "val_mask")

    def forward(self, data: Data) -> Data:
        nodes = data.val_mask.nonzero().squeeze(-1)
        if len(nodes) < 2:
            raise UsageError(
                f"a split with {len(nodes)} validation nodes has no two halves of them: choose "
                "another, see --help"
            )
        half = nodes[torch.randperm(len(nodes))[: len(nodes) // 2]]
        data.inner_mask = data.train_mask
        data.train_mask = torch.zeros_like(data.val_mask).index_fill_(0, half, True)
        data.val_mask = data.val_mask & ~data.train_mask
        return data

"""Features of images of Mini-ImageNet, which a convolutional network has made."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from curvlab.data.files.pickles import read_pickle
from curvlab.data.transforms.nearest_neighbours import NearestNeighbourGraph

PARTS = ("train", "val", "test")


class MiniImageNetGraph(NearestNeighbourGraph):
    """Images of 30 classes as the features that NodeFormer and Hypformer use, 128 each.

    The file is a pickled dictionary of `x_train`, `x_val`, `x_test` (arrays or tensors) and
    `y_train`, `y_val`, `y_test`, which are put together again.
    """

    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        """Read the pickle; it may hold arrays and tensors and nothing else."""
        content = read_pickle(paths[0])
        x, y = (np.concatenate([content[f"{kind}_{part}"] for part in PARTS]) for kind in "xy")
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)

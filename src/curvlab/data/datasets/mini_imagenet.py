"""Features of images of Mini-ImageNet, computed by a convolutional network."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from curvlab.data.files.pickles import read_pickle
from curvlab.data.transforms.nearest_neighbours import NearestNeighbourGraph

PARTS = ("train", "val", "test")


class MiniImageNetGraph(NearestNeighbourGraph):
    """Images of 30 classes as the features that NodeFormer and Hypformer use, 128 each."""

    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        """Join the arrays or tensors `x_train`, `x_val`, ..., `y_test` of the pickle."""
        content = read_pickle(paths[0])
        x, y = (np.concatenate([content[f"{kind}_{part}"] for part in PARTS]) for kind in "xy")
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)

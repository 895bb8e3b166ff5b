"""Features of images of Mini-ImageNet, which a convolutional network has made."""

import codecs
import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvlab.data.files.pickles import read_pickle
from curvlab.data.transforms.nearest_neighbours import NearestNeighbourGraph
from curvlab.errors import UsageError

PARTS = ("train", "val", "test")
_reconstruct = np.empty(0).__reduce__()[0]
_from_buffer = np.empty(0).__reduce_ex__(5)[0]


def _storage(content: bytes) -> Any:
    """What holds the numbers of a pickled tensor, read without running anything."""
    return torch.load(io.BytesIO(content), weights_only=True)


CLASSES = {  # arrays and tensors, by the names of several releases
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": codecs.encode,
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": torch._utils._rebuild_tensor_v2,
    "torch.storage._load_from_bytes": _storage,
}


class MiniImageNetGraph(NearestNeighbourGraph):
    """Images of 30 classes as the features that NodeFormer and Hypformer use, 128 each.

    The file is a pickled dictionary of `x_train`, `x_val`, `x_test` (arrays or tensors) and
    `y_train`, `y_val`, `y_test`, which are put together again.
    """

    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        """Read the pickle; it may hold arrays and tensors and nothing else.

        Raises:
            UsageError: It holds something else, or lacks a part.
        """
        content = read_pickle(paths[0], CLASSES)
        keys = [f"{kind}_{part}" for kind in "xy" for part in PARTS]
        missing = [key for key in keys if not isinstance(content, dict) or key not in content]
        if missing:
            raise UsageError(f"{paths[0]} has no {', '.join(missing)}: put the right file there.")
        x, y = (
            np.concatenate([np.asarray(content[f"{kind}_{part}"]) for part in PARTS])
            for kind in "xy"
        )
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)

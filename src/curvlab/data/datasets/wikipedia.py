"""Chameleon and Squirrel, with and without duplicate nodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import LabelledGraph
from curvlab.options import DatasetFiles


class WikipediaGraph(LabelledGraph):
    """Pages of Wikipedia on one subject, classified by their monthly traffic.

    The filtered graphs have nodes with the same neighbours and label once (Platonov et al., 2023).

    Args:
        versions: `file` and `statistics` of the versions `filtered` and `original`.
        filtered: read the filtered version.
        **options: of `LabelledGraph`, but for `files` and `statistics`.
    """

    def __init__(
        self, versions: DatasetFiles[Mapping[str, Any]], filtered: bool = True, **options: Any
    ) -> None:
        version = versions["filtered" if filtered else "original"]
        super().__init__(files=[version["file"]], statistics=version["statistics"], **options)

    def read(self, paths: list[Path]) -> Data:
        with np.load(paths[0], allow_pickle=False) as arrays:
            return Data(
                x=torch.from_numpy(arrays["node_features"]),
                y=torch.from_numpy(arrays["node_labels"]),
                edge_index=torch.from_numpy(arrays["edges"]).T,
                given_train=torch.from_numpy(arrays["train_masks"]).T,
                given_val=torch.from_numpy(arrays["val_masks"]).T,
                given_test=torch.from_numpy(arrays["test_masks"]).T,
            )

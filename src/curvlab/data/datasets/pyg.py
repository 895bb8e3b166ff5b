"""Graphs with a dataset class in PyTorch Geometric, from fetched raw files."""

import warnings
from collections.abc import Callable
from pathlib import Path

from torch_geometric.data import Data, InMemoryDataset

from curvlab.data.datasets.labelled import GIVEN_MASKS, LabelledGraph
from curvlab.data.files.pickles import read_pickle
from curvlab.data.files.sources import pyg_root


class PyGGraph(LabelledGraph, kw_only=True):
    """A dataset class of PyTorch Geometric, given its raw files in a temporary folder.

    Args:
        dataset: class of the data set, called with its `root`, the first part of `folder`.
    """

    dataset: Callable[..., InMemoryDataset]

    def read(self, paths: list[Path]) -> Data:
        with pyg_root({f"{self.folder}/{path.name}": path for path in paths}) as root:
            (data,) = self.dataset(root=str(root / Path(self.folder).parts[0]))
        if self.given is not None:
            for name in GIVEN_MASKS:
                mask = data[f"{name.removeprefix('given_')}_mask"]
                data[name] = mask.reshape(len(mask), -1)
        return data


class PlanetoidGraph(PyGGraph):
    """A citation network, whose pickles must hold data only."""

    def read(self, paths: list[Path]) -> Data:
        for path in paths:
            if path.suffix != ".index":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read_pickle(path, encoding="latin1")
        return super().read(paths)

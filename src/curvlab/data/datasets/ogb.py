"""Graphs of the Open Graph Benchmark (Hu et al., 2020), read from the archives that it publishes.

OGB's own class asks at a prompt before it downloads or updates something, and unpickles files.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from zipfile import ZipFile

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask, scatter

from curvlab.data.datasets.labelled import GIVEN_MASKS, LabelledGraph
from curvlab.data.files.cleaning import check_statistics
from curvlab.data.files.disk_graph import DiskGraph, write_disk_graph
from curvlab.options import DatasetFiles

SUFFIXES = (".csv.gz", ".npz", ".txt")  # of raw files; archives may hold pickles too


class OGBGraph(LabelledGraph, kw_only=True):
    """A graph of `ogbn-*` with its official split.

    Nodes without features get the mean of their edges'; without a label they are in no part.

    Args:
        dataset: OGB's name of the graph, for instance `ogbn-arxiv`.
        binary: read arrays from files of NumPy, which OGB has for sets that are too large for text.
        both_directions: each edge is listed once and counts in both directions.
    """

    dataset: str
    binary: DatasetFiles[bool] = False
    both_directions: DatasetFiles[bool] = False

    def read(self, paths: list[Path]) -> Data:
        return self._read(paths)

    def _read(self, paths: list[Path], mmap_mode: Literal["r"] | None = None) -> Data:
        """Read the graph; with `mmap_mode` a binary one's edges and features stay on disk."""
        with unpack_archive(paths[0], SUFFIXES) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of mapped arrays, which cannot be written
            arrays = _binary(folder / "raw", mmap_mode) if self.binary else _text(folder / "raw")
            raw = {name: torch.from_numpy(array) for name, array in arrays.items()}
            parts = []
            for part in ("train", "valid", "test"):
                (path,) = folder.glob(f"split/*/{part}.csv.gz")
                parts.append(_table(path))
        y = raw["node_label"]
        edges = raw["edge_index"]
        features = raw.get("edge_feat")
        if self.both_directions:
            edges = torch.cat([edges, edges.flip(0)], dim=1)
            features = None if features is None else features.repeat(2, 1)
        data = Data(x=raw.get("node_feat"), edge_index=edges, num_nodes=len(y))
        if features is not None and data.x is None:
            data.x = mean_of_edges(edges, features, len(y))
        y = y[:, 0] if y.shape[1] == 1 else y
        if y.dim() == 1 and bool(y.isnan().any()):
            data.labelled = ~y.isnan()
            y = y.nan_to_num(-1)
        data.y = y.long()
        for name, nodes in zip(GIVEN_MASKS, parts, strict=True):
            mask = index_to_mask(torch.from_numpy(nodes.ravel()), len(y))
            data[name] = (mask & data.get("labelled", mask)).unsqueeze(1)
        return data

    @property
    def to_disk(self) -> Callable[[Path], DiskGraph] | None:
        """The function that writes a binary graph piece by piece; None for other formats."""
        return self._to_disk if self.binary else None

    def _to_disk(self, folder: Path) -> DiskGraph:
        def check_edges(graph: DiskGraph) -> None:
            check_statistics(self.name, {"num_edges": graph.num_edges}, self.statistics)

        data = self._read(self.download(), "r")
        data.given = self.given
        data.raw_edges = data.num_edges
        data.homophily = nan
        facts = {**self.facts(data)}
        del facts["num_edges"], facts["homophily"]
        check_statistics(self.name, facts, self.statistics)
        return write_disk_graph(folder, data, check_edges)


@contextmanager
def unpack_archive(archive: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Unpack an archive's files with these suffixes to a folder, for the length of the block."""
    # Next to the archive, since a folder for temporary files can be too small for it.
    with TemporaryDirectory(dir=archive.parent, prefix=".unpacked-") as place:
        with ZipFile(archive) as files:  # which lets no member out of the folder
            members = [name for name in files.namelist() if name.endswith(suffixes)]
            files.extractall(place, members)
        yield Path(place) / archive.stem


def _table(path: Path) -> np.ndarray:
    return pd.read_csv(path, header=None).to_numpy(copy=True)


def _text(raw: Path) -> dict[str, np.ndarray]:
    """The arrays of a set whose files are tables."""
    names = ("edge", "node-feat", "edge-feat", "node-label")
    paths = {name: raw / f"{name}.csv.gz" for name in names}
    arrays = {}
    for name, path in paths.items():
        if path.exists():
            arrays[name.replace("-", "_")] = _table(path)
    arrays["edge_index"] = arrays.pop("edge").T
    return arrays


def _binary(raw: Path, mmap_mode: Literal["r"] | None) -> dict[str, np.ndarray]:
    """The arrays of a set whose files are NumPy's."""
    arrays = {"node_label": np.load(raw / "node-label.npz")["node_label"]}
    with ZipFile(raw / "data.npz") as files:
        for name in ("edge_index", "node_feat"):
            path = files.extract(f"{name}.npy", raw)
            arrays[name] = np.load(path, mmap_mode)
    (raw / "data.npz").unlink()
    return arrays


def mean_of_edges(edge_index: Tensor, edge_attr: Tensor, num_nodes: int) -> Tensor:
    """Means of the features of a node's edges, `[nodes, features]` (float32); 0 without edges."""
    columns = (  # in double precision, in which a copy of all features at once would not fit
        scatter(column.double(), edge_index[0], 0, num_nodes, "mean") for column in edge_attr.T
    )
    return torch.stack([*columns], dim=1).float()

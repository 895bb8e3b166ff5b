"""Graphs of the Open Graph Benchmark (Hu et al., 2020), read from the archives that it publishes.

OGB's own class asks at a prompt before it downloads or updates something, and unpickles files.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN, LabelledGraph
from curvlab.data.files.cleaning import check_statistics
from curvlab.data.files.disk_graph import DiskGraph
from curvlab.options import Incidental

SUFFIXES = (".csv.gz", ".npz", ".txt")  # of raw files; archives may hold pickles too
PIECE = 2**22  # numbers that are written to disk at a time


class OGBGraph(LabelledGraph, kw_only=True):
    """A graph of `ogbn-*` with its official split.

    Nodes without features get the mean of their edges'; without a label they are in no part.

    Args:
        dataset: OGB's name of it, for instance `ogbn-arxiv`.
        binary: its arrays are files of NumPy, as of sets that are too large for text.
        both_directions: each edge is listed once and counts in both directions.
    """

    dataset: str
    binary: Incidental[bool] = False
    both_directions: Incidental[bool] = False

    def read(self, paths: list[Path]) -> Data:
        with self._unpack(paths) as (raw, y, parts):
            edges, features = torch.from_numpy(np.array(raw["edge_index"])), raw.get("edge_feat")
            if self.both_directions:
                edges = torch.cat([edges, edges.flip(0)], dim=1)
                features = None if features is None else np.concatenate([features, features])
            if "node_feat" in raw:
                x = torch.from_numpy(np.array(raw["node_feat"]))
            else:
                x = mean_of_edges(edges, torch.from_numpy(features), len(y))
        data = Data(x=x, edge_index=edges, y=y, num_nodes=len(y))
        if y.dim() == 1 and y.is_floating_point():
            data.labelled = ~y.isnan()
            data.y = torch.where(data.labelled, y, -1).long()
        for name, part in parts.items():
            mask = part if "labelled" not in data else part & data.labelled
            data[name] = mask.unsqueeze(1)
        return data

    @property
    def to_disk(self) -> Callable[[Path], DiskGraph] | None:
        """Writes a graph in OGB's binary format piece by piece; None for other formats."""
        return self._to_disk if self.binary else None

    def _to_disk(self, folder: Path) -> DiskGraph:
        with self._unpack(self.download()) as (raw, y, parts):
            known = ~y.isnan()
            labels = y[known].long().numpy()
            given = {name: part[known, None].numpy() for name, part in parts.items()}
            edges, features = raw["edge_index"], raw["node_feat"]
            counts = np.bincount(labels).tolist()
            found: dict[str, Any] = {
                "num_nodes": len(features),
                "raw_edges": edges.shape[1],
                "num_features": features.shape[1],
                "num_classes": len(counts),
                "class_counts": counts,
                "given_sizes": [int(mask.sum()) for mask in given.values()],
            }
            check_statistics(self.name, found, self.statistics)
            graph = DiskGraph.create(folder)
            graph.write_edges(_pieces(edges, 1), len(features))
            check_statistics(self.name, {"num_edges": graph.num_edges}, self.statistics)
            graph.write_features(_pieces(features, 0), features.shape[1])
        graph.write_labels(known.nonzero().flatten().numpy(), labels, given)
        graph.declare(given=self.given)
        return graph

    @contextmanager
    def _unpack(
        self, paths: list[Path]
    ) -> Iterator[tuple[dict[str, np.ndarray], Tensor, dict[str, Tensor]]]:
        """Arrays by OGB's names, labels (`[nodes]` if a node has one), and the parts' masks."""
        with unpack_archive(paths[0], SUFFIXES) as folder:
            raw = (_binary if self.binary else _text)(folder / "raw")
            labels = torch.from_numpy(raw.pop("node_label"))
            if labels.is_floating_point() and not bool(labels.isnan().any()):
                labels = labels.long()
            masks = {}
            for name, part in zip(GIVEN, ("train", "valid", "test"), strict=True):
                (path,) = folder.glob(f"split/*/{part}.csv.gz")
                masks[name] = torch.zeros(len(labels), dtype=torch.bool)
                masks[name][torch.from_numpy(_table(path).ravel())] = True
            yield raw, labels[:, 0] if labels.shape[1] == 1 else labels, masks


@contextmanager
def unpack_archive(archive: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Unpack an archive's files with these suffixes to a folder, for the length of the block."""
    # Next to the archive, since a folder for temporary files can be too small for it.
    with TemporaryDirectory(dir=archive.parent, prefix=".unpacked-") as place:
        with ZipFile(archive) as files:  # which lets no member out of the folder
            files.extractall(place, [n for n in files.namelist() if n.endswith(suffixes)])
        yield Path(place) / archive.stem


def _table(path: Path) -> np.ndarray:
    return pd.read_csv(path, header=None).to_numpy(copy=True)


def _text(raw: Path) -> dict[str, np.ndarray]:
    """The arrays of a set whose files are tables."""
    names = ("edge", "node-feat", "edge-feat", "node-label")
    paths = {name: raw / f"{name}.csv.gz" for name in names}
    arrays = {n.replace("-", "_"): _table(path) for n, path in paths.items() if path.exists()}
    arrays["edge_index"] = arrays.pop("edge").T
    return arrays


def _binary(raw: Path) -> dict[str, np.ndarray]:
    """The arrays of a set whose files are NumPy's, those of all edges and nodes mapped."""
    arrays = {"node_label": np.load(raw / "node-label.npz")["node_label"]}
    with ZipFile(raw / "data.npz") as files:
        for name in ("edge_index", "node_feat"):
            path = files.extract(f"{name}.npy", raw)
            arrays[name] = np.load(path, mmap_mode="r")
    (raw / "data.npz").unlink()
    return arrays


def _pieces(array: np.ndarray, axis: int) -> Iterator[np.ndarray]:
    """Yield an array piece by piece along one of its two axes."""
    size = max(1, PIECE // array.shape[1 - axis])
    for first in range(0, array.shape[axis], size):
        piece = slice(first, first + size)
        yield array[:, piece] if axis else array[piece]


def mean_of_edges(edge_index: Tensor, edge_attr: Tensor, num_nodes: int) -> Tensor:
    """Mean of the features of a node's edges, `[nodes, features]` (float32); 0 if it has none."""
    source = edge_index[0].numpy()
    degree = np.maximum(np.bincount(source, minlength=num_nodes), 1)
    sums = [  # in double precision, in which a copy of all features at once would not fit
        np.bincount(source, weights=column, minlength=num_nodes) for column in edge_attr.numpy().T
    ]
    return torch.from_numpy(np.stack(sums, axis=1) / degree[:, None]).float()

"""Graphs of the Open Graph Benchmark (Hu et al., 2020), read from the archives that it publishes.

OGB's own class asks at a prompt before it downloads or updates something, and unpickles files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from curvlab.data.files.checks import check_labels, check_statistics, not_finite
from curvlab.data.files.disk_graph import DiskGraph
from curvlab.errors import UsageError
from curvlab.options import Incidental

SUFFIXES = (".csv.gz", ".npz", ".txt")  # of raw files; archives may hold pickles too
BINARY = "raw/data.npz"  # of sets that are too large for text
PIECE = 2**22  # numbers that are written to disk at a time


class OGBGraph(LabelledGraph):
    """A graph of `ogbn-*` from the archive that OGB publishes, with its official split.

    Nodes without features get the mean of the features of their edges; nodes whose label is NaN
    are `labelled = False` and in no part of the split.

    Args:
        dataset: OGB's name of it, for instance `ogbn-arxiv`.
        contents: paths that its archive must hold, below a folder with the archive's name.
        both_directions: each edge is listed once and counts in both directions.
        **options: of `LabelledGraph`; the one file is the archive.
    """

    def __init__(
        self,
        dataset: str,
        contents: Incidental[Sequence[str]],
        both_directions: Incidental[bool] = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.dataset = dataset
        self.contents = contents
        self.both_directions = both_directions

    def read(self, paths: list[Path]) -> Data:
        """Read the raw files.

        Raises:
            UsageError: The archive lacks a file.
        """
        with self._unpacked(paths) as (raw, y, parts):
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
        return self._to_disk if BINARY in self.contents else None

    def _to_disk(self, folder: Path) -> DiskGraph:
        """Write edges and features a piece at a time.

        Raises:
            UsageError: The graph has other statistics, or features, labels or parts that are
                unusable.
        """
        with self._unpacked(self.download()) as (raw, y, parts):
            known = ~y.isnan()
            try:
                check_labels(Data(y=y, num_nodes=len(y), labelled=known), self.num_classes)
            except UsageError as error:
                raise UsageError(f"{self.name}: {error}") from error
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
            graph.write_features(_finite(self.name, _pieces(features, 0)), features.shape[1])
        graph.write_labels(known.nonzero().flatten().numpy(), labels, given)
        graph.declare(given=self.given)
        return graph

    @contextmanager
    def _unpacked(
        self, paths: list[Path]
    ) -> Iterator[tuple[dict[str, np.ndarray], Tensor, dict[str, Tensor]]]:
        """Arrays by OGB's names, labels (`[nodes]` if a node has one), and the parts' masks.

        Raises:
            UsageError: The archive lacks a file.
        """
        (archive,) = paths
        with unpacked(archive, SUFFIXES) as folder:
            missing = [path for path in self.contents if not (folder / path).is_file()]
            if missing:
                raise UsageError(
                    f"{archive} does not hold {archive.stem}/{missing[0]}, so that it is not what "
                    f"OGB publishes as {self.dataset}: delete it and run again to fetch a fresh "
                    "copy."
                )
            raw = (_binary if BINARY in self.contents else _text)(folder / "raw")
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
def unpacked(archive: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The folder of an archive's name with its files that end so, until the block ends."""
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
    """An array a piece after the other along one of its two axes."""
    size = max(1, PIECE // array.shape[1 - axis])
    for first in range(0, array.shape[axis], size):
        piece = slice(first, first + size)
        yield array[:, piece] if axis else array[piece]


def _finite(name: str, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Pieces of features `[some nodes, features]` as they come, unless some are not finite.

    Raises:
        UsageError: How many nodes have such features, after the last piece.
    """
    seen, bad, first = 0, 0, 0
    for piece in pieces:
        rows = np.flatnonzero(~np.isfinite(piece).all(axis=1))
        if len(rows) and not bad:
            first = seen + int(rows[0])
        bad += len(rows)
        seen += len(piece)
        yield piece
    if bad:
        raise UsageError(f"{name}: {not_finite(bad, first)}")


def mean_of_edges(edge_index: Tensor, edge_attr: Tensor, num_nodes: int) -> Tensor:
    """Mean of the features of a node's edges, `[nodes, features]` (float32); 0 if it has none.

    x_v = sum of edge_attr_(v, u) over neighbours u / number of neighbours u.

    Args:
        edge_index: Both directions of every edge, `[2, edges]`.
        edge_attr: `[edges, features]`.
        num_nodes: Number of nodes.
    """
    source = edge_index[0].numpy()
    degree = np.maximum(np.bincount(source, minlength=num_nodes), 1)
    sums = [  # in double precision, in which a copy of all features at once would not fit
        np.bincount(source, weights=column, minlength=num_nodes) for column in edge_attr.numpy().T
    ]
    return torch.from_numpy(np.stack(sums, axis=1) / degree[:, None]).float()

"""Graphs on disk: neighbours and features as arrays that are read a block at a time.

The folder of a graph holds `offsets` `[nodes + 1]` and `neighbours` `[2 edges]`: both directions of
every edge by the node that it starts from, ascending, no duplicates, no loops. It holds `features`
`[nodes, features]`, and of the nodes that have a label `nodes`, `labels` and the given splits.
Its manifest `graph.json` has the CRC-32 of every array and is written when they are on the disk.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.checksums import DamagedError, file_checksum, read_checked, with_checksum
from curvlab.data.datasets.labelled import GIVEN
from curvlab.errors import UsageError
from curvlab.results.files import atomic_write, flush

log = logging.getLogger(__name__)

COMPLETE = "graph.json"  # written last, so that a folder that has it is whole
SOURCES = ("offsets", "neighbours", "features")
"""Arrays that tokens are made of."""

BUCKET_EDGES = 2**23  # that are sorted at a time: 200 MB
COUNTED_RANGES = 2**20  # of nodes whose edges are counted together
CHUNK_ROWS = 2**18  # of features that are copied at a time


@dataclass(frozen=True)
class DiskGraph:
    """A graph in a folder.

    Attributes:
        folder: where it is.
        num_nodes: number of nodes.
        num_edges: undirected edges.
        num_features: numbers of features of a node.
        given: what the splits that come with it are called; None if there are none.
        checksums: CRC-32 of the arrays' files.
    """

    folder: Path
    num_nodes: int
    num_edges: int
    num_features: int
    given: str | None
    checksums: Mapping[str, int]

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Compare files with their checksums.

        Args:
            names: of the arrays; all of them by default.

        Raises:
            UsageError: One has been changed.
        """
        for name in self.checksums if names is None else names:
            path = self.folder / f"{name}.npy"
            if self.checksums.get(name) != file_checksum(path):
                raise _damaged(path)

    def array(self, name: str) -> np.ndarray:
        """One of the arrays, mapped, not read."""
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    def labelled(self) -> Data:
        """The nodes that have a label, ascending, as splits take them: `y`, given splits."""
        data = Data(y=torch.from_numpy(np.load(self.folder / "labels.npy")))
        data.num_nodes = len(data.y)
        if self.given is not None:
            for name in GIVEN:
                data[name] = torch.from_numpy(np.load(self.folder / f"{name}.npy"))
            data.given = self.given
        return data


def open_disk_graph(folder: Path) -> DiskGraph | None:
    """The graph in a folder; None if there is none or half of one.

    All that a run reads beside the tokens is compared with its checksum; what the tokens are made
    of, which is large, when they are made (`DiskGraph.verify`).

    Raises:
        UsageError: A file of it is missing, cut, changed, or of another graph.
    """
    path = folder / COMPLETE
    if not path.exists():
        return None
    try:
        graph = DiskGraph(folder, **read_checked(path))
    except (DamagedError, TypeError) as error:
        raise _damaged(path) from error
    labelled = len(_sound(graph, "nodes", np.int64))
    _sound(graph, "offsets", np.int64, graph.num_nodes + 1)
    _sound(graph, "neighbours", np.int32, 2 * graph.num_edges)
    _sound(graph, "features", np.float32, graph.num_nodes, graph.num_features)
    _sound(graph, "labels", np.int64, labelled)
    for name in GIVEN if graph.given is not None else ():
        _sound(graph, name, np.bool_, labelled)
    graph.verify(name for name in graph.checksums if name not in SOURCES)
    return graph


def _sound(graph: DiskGraph, name: str, dtype: type, *sizes: int) -> np.ndarray:
    """One of the arrays, mapped; `sizes` are those of its first dimensions.

    Raises:
        UsageError: It is missing, cut, of another type, or its first sizes are others.
    """
    path = graph.folder / f"{name}.npy"
    try:
        array = graph.array(name)
    except (FileNotFoundError, ValueError, EOFError) as error:
        raise _damaged(path) from error
    if array.dtype != dtype or array.shape[: len(sizes)] != sizes:
        raise _damaged(path)
    return array


def _damaged(path: Path) -> UsageError:
    """What is said of a file that is not what it was."""
    return UsageError(
        f"{path} is not what was written there: delete the folder {path.parent} and run again to "
        "write the graph anew."
    )


def write_disk_graph(folder: Path, data: Data) -> DiskGraph:
    """Write a graph that is in memory."""
    nodes = int(data.num_nodes or 0)
    edges = (data.edge_index.numpy() for _ in range(1))
    writer = DiskGraphWriter(folder, nodes)
    writer.edges(edges)
    writer.features(iter([data.x.numpy()]), data.num_features)
    known = data.get("labelled")
    labelled = np.arange(nodes) if known is None else known.nonzero().flatten().numpy()
    given = {name: data[name].numpy()[labelled] for name in GIVEN if name in data}
    writer.labels(labelled, data.y.numpy()[labelled], given)
    return writer.finish(data.get("given"))


class DiskGraphWriter:
    """Writes a graph whose edges and features come in pieces, with little memory.

    Args:
        folder: Where it goes; what is there is thrown away.
        num_nodes: Number of nodes.
    """

    def __init__(self, folder: Path, num_nodes: int) -> None:
        if folder.exists():
            rmtree(folder)
        folder.mkdir(parents=True)
        self.folder = folder
        self.num_nodes = num_nodes
        self.entries = 0
        self.num_features = 0

    def edges(self, chunks: Iterable[np.ndarray]) -> None:
        """Sort edges `[2, some]`, in any order and direction and more than once, into neighbours.

        Both directions go to files by the range that the node lies in that they start from, with
        about `BUCKET_EDGES` in each; each range is then sorted alone.

        Raises:
            UsageError: An edge leads to a node that does not exist.
        """
        width = -(-self.num_nodes // COUNTED_RANGES)
        counts = np.zeros(-(-self.num_nodes // width), dtype=np.int64)
        raw = self.folder / "edges.raw"
        with raw.open("wb") as file:
            for chunk in chunks:
                if chunk.size and not 0 <= chunk.min() <= chunk.max() < self.num_nodes:
                    raise UsageError(
                        f"the graph has edges to nodes outside 0 ... {self.num_nodes - 1}."
                    )
                proper = chunk[:, chunk[0] != chunk[1]].astype(np.int32)
                for ends in proper:
                    counts += np.bincount(ends // width, minlength=len(counts))
                file.write(np.ascontiguousarray(proper.T).tobytes())
        ends = np.minimum(_ranges(counts) * width, self.num_nodes)
        self._share_out(raw, ends)
        raw.unlink()
        self._sort(ends)

    def features(self, chunks: Iterator[np.ndarray], num_features: int) -> None:
        """Write features `[some nodes, features]` that come in the order of the nodes."""
        shape = (self.num_nodes, num_features)
        with _NpyFile(self.folder / "features.npy", np.float32, shape) as file:
            for chunk in chunks:
                for first in range(0, len(chunk), CHUNK_ROWS):
                    file.append(chunk[first : first + CHUNK_ROWS])
        self.num_features = num_features

    def labels(self, nodes: np.ndarray, labels: np.ndarray, given: dict[str, np.ndarray]) -> None:
        """Write labels of the nodes that have one, ascending, and the splits they are in."""
        arrays = {"nodes": nodes, "labels": labels.astype(np.int64), **given}
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def finish(self, given: str | None) -> DiskGraph:
        """Declare the graph whole."""
        checksums = {}
        for path in sorted(self.folder.glob("*.npy")):
            flush(path)  # else a power loss may leave the manifest and not the arrays
            checksums[path.stem] = file_checksum(path)
        sizes = (self.num_nodes, self.entries // 2, self.num_features)
        graph = DiskGraph(self.folder, *sizes, given, checksums)
        meta = {key: value for key, value in vars(graph).items() if key != "folder"}
        atomic_write(self.folder / COMPLETE, json.dumps(with_checksum(meta)))
        return graph

    def _share_out(self, raw: Path, ends: np.ndarray) -> None:
        files = [(self.folder / f"edges.{i}").open("wb") for i in range(len(ends))]
        try:
            with raw.open("rb") as source:
                while block := source.read(8 * BUCKET_EDGES):
                    pairs = np.frombuffer(block, dtype=np.int32).reshape(-1, 2)
                    for both in (pairs, pairs[:, ::-1]):
                        bucket = np.searchsorted(ends, both[:, 0], side="right")
                        order = np.argsort(bucket, kind="stable")
                        cuts = np.searchsorted(bucket[order], np.arange(1, len(ends)))
                        for file, part in zip(files, np.split(both[order], cuts), strict=True):
                            file.write(part.tobytes())
        finally:
            for file in files:
                file.close()

    def _sort(self, ends: np.ndarray) -> None:
        first, total = 0, 0
        with (
            _NpyFile(self.folder / "neighbours.npy", np.int32) as neighbours,
            _NpyFile(self.folder / "offsets.npy", np.int64, (self.num_nodes + 1,)) as offsets,
        ):
            offsets.append(np.zeros(1, dtype=np.int64))
            for i, end in enumerate(ends):
                path = self.folder / f"edges.{i}"
                start, target = np.fromfile(path, dtype=np.int32).reshape(-1, 2).T
                key = np.unique((start.astype(np.int64) - first) * self.num_nodes + target)
                degree = np.bincount(key // self.num_nodes, minlength=end - first)
                neighbours.append((key % self.num_nodes).astype(np.int32))
                offsets.append(total + np.cumsum(degree))
                total += len(key)
                first = end
                path.unlink()
        self.entries = total


def _ranges(counts: np.ndarray) -> np.ndarray:
    """Where groups of consecutive counts end that add up to about `BUCKET_EDGES`."""
    total = np.cumsum(counts)
    buckets = max(1, -(-int(total[-1]) // BUCKET_EDGES))
    ends = np.searchsorted(total, np.arange(1, buckets) * (total[-1] / buckets)) + 1
    return np.unique(np.append(ends[ends < len(counts)], len(counts)))


class _NpyFile:
    """A `.npy` file that is written front to back; the length of an array may come out at the end.

    Args:
        path: Of the file.
        dtype: Of its entries.
        shape: Of the array; None for one of unknown length.
    """

    def __init__(self, path: Path, dtype: type, shape: tuple[int, ...] | None = None) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self.entries = 0

    def __enter__(self) -> "_NpyFile":
        self.file = self.path.open("wb")
        self._header(self.shape or (2**62,))
        return self

    def append(self, array: np.ndarray) -> None:
        """Write what comes next."""
        self.entries += array.size
        self.file.write(np.ascontiguousarray(array, dtype=self.dtype).tobytes())

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            shape = self.shape or (self.entries,)
            if self.entries != np.prod(shape):
                self.file.close()
                raise UsageError(
                    f"{self.path} got {self.entries:,} numbers instead of {np.prod(shape):,}"
                )
            self.file.seek(0)
            self._header(shape)  # as long as the one of an unknown length, which has more digits
        self.file.close()

    def _header(self, shape: tuple[int, ...]) -> None:
        description = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self.file, description)

"""Graphs on disk: neighbours and features as arrays that are read a block at a time."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Self

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.files.arrays import ArrayFolder
from curvlab.errors import UsageError

SOURCES = ("offsets", "neighbours", "features")
"""Arrays that tokens are made of."""

BUCKET_EDGES = 2**23  # that are sorted at a time: 200 MB
COUNTED_RANGES = 2**20  # of nodes whose edges are counted together
CHUNK_ROWS = 2**18  # of features that are written at a time


class DiskGraph(ArrayFolder):
    """A graph in a folder, written and read with little memory.

    Its arrays are `offsets` `[nodes + 1]` and `neighbours` `[2 edges]`: both directions of every
    edge by the node that it starts from, ascending, no duplicates, no loops; `features`
    `[nodes, features]`; and of the nodes that have a label `nodes`, `labels` and the given splits.
    """

    @classmethod
    def create(cls, folder: Path) -> Self:
        """An empty graph; what is in the folder is deleted."""
        if folder.exists():
            rmtree(folder)
        folder.mkdir(parents=True)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """The graph in a folder; None if there is none or half of one.

        All but what the tokens are made of, which is large, is compared with its checksum.

        Raises:
            UsageError: A file of it is missing or changed.
        """
        graph = super().open(folder)
        if graph is not None:
            graph.verify(graph.arrays.keys() - set(SOURCES))
        return graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.arrays["offsets"]["shape"][0]) - 1

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.arrays["neighbours"]["shape"][0]) // 2

    @property
    def num_features(self) -> int:
        """Number of features of a node."""
        return int(self.arrays["features"]["shape"][1])

    def labelled(self) -> Data:
        """The nodes that have a label, ascending, as splits take them: `y`, given splits."""
        found = {name: torch.from_numpy(self.read(name)) for name in GIVEN if name in self.arrays}
        if found:
            found["given"] = self.facts["given"]
        y = torch.from_numpy(self.read("labels"))
        return Data(y=y, num_nodes=len(y), **found)

    def write_features(self, chunks: Iterable[np.ndarray], num_features: int) -> None:
        """Write features `[some nodes, features]` that come in the order of the nodes."""
        with self.writing("features", np.float32, num_features) as append:
            for chunk in chunks:
                for first in range(0, len(chunk), CHUNK_ROWS):
                    append(chunk[first : first + CHUNK_ROWS])

    def write_labels(
        self, nodes: np.ndarray, labels: np.ndarray, given: Mapping[str, np.ndarray]
    ) -> None:
        """Write labels of the nodes that have one, ascending, and the splits they are in."""
        for name, array in {"nodes": nodes, "labels": labels.astype(np.int64), **given}.items():
            self.write(name, array)

    def write_edges(self, chunks: Iterable[np.ndarray], num_nodes: int) -> None:
        """Sort edges `[2, some]`, in any order and direction and more than once, into neighbours.

        Both directions go to files by the range that the node lies in that they start from, with
        about `BUCKET_EDGES` in each; each range is then sorted alone.

        Raises:
            UsageError: An edge leads to a node that does not exist.
        """
        width = -(-num_nodes // COUNTED_RANGES)
        counts = np.zeros(-(-num_nodes // width), dtype=np.int64)
        raw = self.folder / "edges.raw"
        with raw.open("wb") as file:
            for chunk in chunks:
                if chunk.size and not 0 <= chunk.min() <= chunk.max() < num_nodes:
                    raise UsageError(f"the graph has edges to nodes outside 0 ... {num_nodes - 1}.")
                proper = chunk[:, chunk[0] != chunk[1]].astype(np.int32)
                for ends in proper:
                    counts += np.bincount(ends // width, minlength=len(counts))
                file.write(np.ascontiguousarray(proper.T).tobytes())
        ends = np.minimum(_ranges(counts) * width, num_nodes)
        self._distribute(raw, ends)
        raw.unlink()
        first, total = 0, 0
        with (
            self.writing("neighbours", np.int32) as neighbours,
            self.writing("offsets", np.int64) as offsets,
        ):
            offsets(np.zeros(1))
            for i, end in enumerate(ends):
                path = self.folder / f"edges.{i}"
                start, target = np.fromfile(path, dtype=np.int32).reshape(-1, 2).T
                key = np.unique((start.astype(np.int64) - first) * num_nodes + target)
                degree = np.bincount(key // num_nodes, minlength=end - first)
                neighbours(key % num_nodes)
                offsets(total + np.cumsum(degree))
                total += len(key)
                first = end
                path.unlink()

    def _distribute(self, raw: Path, ends: np.ndarray) -> None:
        """Write both directions of the edges in a file to one file a range of nodes."""
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


def _ranges(counts: np.ndarray) -> np.ndarray:
    """Where groups of consecutive counts end that add up to about `BUCKET_EDGES`."""
    total = np.cumsum(counts)
    buckets = max(1, -(-int(total[-1]) // BUCKET_EDGES))
    ends = np.searchsorted(total, np.arange(1, buckets) * (total[-1] / buckets)) + 1
    return np.unique(np.append(ends[ends < len(counts)], len(counts)))


def write_disk_graph(folder: Path, data: Data) -> DiskGraph:
    """Write a graph that is in memory."""
    nodes = int(data.num_nodes or 0)
    graph = DiskGraph.create(folder)
    graph.write_edges([data.edge_index.numpy()], nodes)
    graph.write_features([data.x.numpy()], data.num_features)
    known = data.get("labelled")
    labelled = np.arange(nodes) if known is None else known.nonzero().flatten().numpy()
    given = {name: data[name].numpy()[labelled] for name in GIVEN if name in data}
    graph.write_labels(labelled, data.y.numpy()[labelled], given)
    graph.declare(given=data.get("given"))
    return graph

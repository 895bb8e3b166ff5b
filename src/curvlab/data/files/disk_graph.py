"""Graphs on disk: arrays with checksums, written sequentially and read in blocks."""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.checksums import DamagedError, add_checksum, file_checksum, read_json
from curvlab.data.datasets.labelled import GIVEN_MASKS
from curvlab.errors import UsageError
from curvlab.files import atomic_write, name_in_errors

SOURCES = ("offsets", "neighbours", "features")
"""Arrays from which tokens are computed."""

BUCKET_NODES = 2**18  # nodes whose edges are sorted at a time: 200 MB at a mean degree of 30
CHUNK_ROWS = 2**18  # rows of features that are written at a time
CHUNK_EDGES = 2**22

MANIFEST = "arrays.json"

Append = Callable[[np.ndarray], None]


class ArrayFolder:
    """Arrays `NAME.bin` in a folder, listed with facts in the manifest that `declare` writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, Any] = {}

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """Return the content of a folder, None if it has none.

        Raises:
            UsageError: a file is damaged.
        """
        instance = cls(folder)
        if not (folder / MANIFEST).exists():
            return None
        try:
            content = read_json(folder / MANIFEST)
        except DamagedError as error:
            raise instance.damage_error(MANIFEST) from error
        instance.arrays = content["arrays"]
        instance.facts = content["facts"]
        for name, entry in instance.arrays.items():
            path = instance.path(name)
            size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
            if not path.exists() or path.stat().st_size != size:
                raise instance.damage_error(path.name)
        return instance

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.bin"

    @contextmanager
    def writing(self, name: str, dtype: type, *row: int) -> Iterator[Append]:
        """Write an array sequentially: yields a function that appends blocks of rows."""
        rows = 0
        checksum = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        with name_in_errors(self.path(name)), self.path(name).open("wb") as file:

            def append(block: np.ndarray) -> None:
                nonlocal rows, checksum
                content = np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8)
                file.write(content.data)
                checksum = zlib.crc32(content.data, checksum)
                rows += len(block)

            yield append
            file.flush()
            os.fsync(file.fileno())
        entry = {"dtype": np.dtype(dtype).str, "shape": [rows, *row], "crc32": checksum}
        self.arrays[name] = entry

    def declare(self, **facts: Any) -> None:
        """Write the manifest; the files of arrays that it does not list are deleted."""
        self.facts = facts
        content = {"arrays": self.arrays, "facts": facts}
        atomic_write(self.folder / MANIFEST, json.dumps(add_checksum(content)))
        for path in self.folder.glob("*.bin"):
            if path.stem not in self.arrays:
                path.unlink()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read rows of an array, all by default."""
        entry = self.arrays[name]
        length, *row = entry["shape"]
        dtype = np.dtype((entry["dtype"], tuple(row)))
        if stop is None:
            stop = length
        count = int(stop - start)
        return np.fromfile(self.path(name), dtype, count, offset=int(start) * dtype.itemsize)

    def open_array(self, name: str) -> np.ndarray:
        """Map an array copy-on-write."""
        entry = self.arrays[name]
        return np.memmap(self.path(name), entry["dtype"], "c", shape=tuple(entry["shape"]))

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Compare the files of arrays, all by default, with their checksums."""
        for name in self.arrays if names is None else names:
            if self.arrays[name]["crc32"] != file_checksum(self.path(name)):
                raise self.damage_error(self.path(name).name)

    def damage_error(self, file: str) -> UsageError:
        """The error of a file whose content has changed."""
        return UsageError(
            f"{self.folder / file} is not what was written there: delete the folder {self.folder} "
            "and run again to rewrite it."
        )


class DiskGraph(ArrayFolder):
    """A graph in a folder, written and read with little memory.

    Its arrays are `offsets` `[nodes + 1]` and `neighbours` `[2 edges]`, by the node that an edge
    starts from, ascending; `features` `[nodes, features]`; and, of the nodes with a
    label, `nodes`, `labels` and splits.
    """

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Create an empty graph; the previous content of the folder is deleted."""
        if folder.exists():
            rmtree(folder)
        folder.mkdir(parents=True)
        return cls(folder)

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        graph = super().open(folder)
        if graph is not None:
            graph.verify(graph.arrays.keys() - set(SOURCES))
        return graph

    @property
    def num_nodes(self) -> int:
        return int(self.arrays["offsets"]["shape"][0]) - 1

    @property
    def num_edges(self) -> int:
        return int(self.arrays["neighbours"]["shape"][0]) // 2

    @property
    def num_features(self) -> int:
        return int(self.arrays["features"]["shape"][1])

    def labelled_nodes(self) -> Data:
        """The nodes with a label, ascending, as a graph for splits: `y` and given splits."""
        masks = {
            name: torch.from_numpy(self.read(name)) for name in GIVEN_MASKS if name in self.arrays
        }
        if masks:
            masks["given"] = self.facts["given"]
        y = torch.from_numpy(self.read("labels"))
        return Data(y=y, num_nodes=len(y), **masks)

    def write_features(self, chunks: Iterable[np.ndarray], num_features: int) -> None:
        """Write features `[some nodes, features]` that come in the order of the nodes."""
        with self.writing("features", np.float32, num_features) as append:
            for chunk in chunks:
                for first in range(0, len(chunk), CHUNK_ROWS):
                    append(chunk[first : first + CHUNK_ROWS])

    def write_labels(
        self, nodes: np.ndarray, labels: np.ndarray, masks: Mapping[str, np.ndarray]
    ) -> None:
        """Write labels of the nodes that have one, ascending, and the splits they are in."""
        arrays = {"nodes": nodes, "labels": labels.astype(np.int64), **masks}
        for name, array in arrays.items():
            with self.writing(name, array.dtype.type, *array.shape[1:]) as append:
                append(array)

    def write_edges(self, chunks: Iterable[np.ndarray], num_nodes: int) -> None:
        """Sort edges `[2, some]`, in any order and direction, into neighbours."""
        paths = [self.folder / f"edges.{i}" for i in range(-(-num_nodes // BUCKET_NODES))]
        with name_in_errors(self.folder), ExitStack() as opened:
            files = [opened.enter_context(path.open("wb")) for path in paths]
            for chunk in chunks:
                if chunk.size and not 0 <= chunk.min() <= chunk.max() < num_nodes:
                    raise UsageError(f"the graph has edges to nodes outside 0 ... {num_nodes - 1}.")
                proper = chunk[:, chunk[0] != chunk[1]].astype(np.int32).T
                for arcs in (proper, proper[:, ::-1]):
                    bucket = arcs[:, 0] // BUCKET_NODES
                    order = np.argsort(bucket, kind="stable")
                    cuts = np.searchsorted(bucket[order], np.arange(1, len(files)))
                    for file, part in zip(files, np.split(arcs[order], cuts), strict=True):
                        file.write(part.tobytes())
        total = 0
        with (
            self.writing("neighbours", np.int32) as neighbours,
            self.writing("offsets", np.int64) as offsets,
        ):
            offsets(np.zeros(1))
            for first, path in zip(range(0, num_nodes, BUCKET_NODES), paths, strict=True):
                start, target = np.fromfile(path, dtype=np.int32).reshape(-1, 2).T
                key = np.unique((start.astype(np.int64) - first) * num_nodes + target)
                nodes = min(BUCKET_NODES, num_nodes - first)
                neighbours(key % num_nodes)
                offsets(total + np.cumsum(np.bincount(key // num_nodes, minlength=nodes)))
                total += len(key)
                path.unlink()


def write_disk_graph(
    folder: Path, data: Data, check: Callable[[DiskGraph], None] = lambda _: None
) -> DiskGraph:
    """Write a graph whose tensors are in memory or mapped; `check` refuses it by its edges."""
    nodes = int(data.num_nodes or 0)
    graph = DiskGraph.create(folder)
    chunks = data.edge_index.split(CHUNK_EDGES, 1)
    graph.write_edges((chunk.numpy() for chunk in chunks), nodes)
    check(graph)
    graph.write_features([data.x.numpy()], data.num_features)
    is_labelled = data.get("labelled")
    labelled = np.arange(nodes)
    if is_labelled is not None:
        labelled = is_labelled.nonzero().flatten().numpy()
    masks = {name: data[name].numpy()[labelled] for name in GIVEN_MASKS if name in data}
    graph.write_labels(labelled, data.y.numpy()[labelled], masks)
    graph.declare(given=data.get("given"))
    return graph

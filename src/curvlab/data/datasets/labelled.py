"""Graphs with features and labels from files: fetched, read once, cleaned, checked, cached."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from traceback import clear_frames
from typing import Any

import numpy as np
import pooch
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.files.cache import cached
from curvlab.data.files.checks import check_statistics
from curvlab.data.files.cleaning import cleaned, homophily
from curvlab.data.files.sources import RemoteFile, fetch
from curvlab.errors import UsageError

GIVEN = ("given_train", "given_val", "given_test")
WORDS = {
    "num_nodes": "nodes",
    "raw_edges": "edges in the raw list",
    "num_edges": "undirected edges",
    "num_features": "features",
    "num_classes": "classes",
    "class_counts": "nodes of each class",
    "homophily": "homophily",
    "given_sizes": "nodes in the parts of its split",
}
"""What messages call the statistics."""


class LabelledGraph(ABC):
    """A graph of node classification; a subclass says how its raw files are read.

    What is read is cleaned (`curvlab.data.files.cleaning`) and kept in the folder `processed`
    beside the raw files, under a name made from their contents. The statistics are asserted
    whenever the graph is loaded, so that a file that parses but is another graph is noticed.

    Args:
        name: What messages call the graph.
        folder: Folder of the raw files inside `data_dir`, and inside the mirror.
        url: Address that the files' paths continue; None if they cannot be downloaded.
        files: The raw files: `path` after the address, whose last part is the name in the folder
            if there is no `name`, and `sha256`, None where nobody has stated one.
        statistics: `num_nodes`, `raw_edges` (of the edge list as it came), `num_edges` (undirected,
            after cleaning), `num_features`, `num_classes`, `class_counts`, `homophily` (of the edge
            list as it came, to four digits) and `given_sizes` (nodes of the three parts of the
            first given split) that the graph must have; None where unknown. Of several labels a
            node, classes are the labels, and there is no homophily.
        given: What the splits that come with the graph are called; None if there are none.
        data_dir: Folder of raw and processed files.
        mirror: Folder with the same layout, used instead of the network.

    Attributes:
        revision: raised whenever `read` returns something else for the same files, so that what is
            on disk of an earlier reader is not taken for it; a subclass that reads in a way of its
            own sets its own.
    """

    revision = 1

    def __init__(
        self,
        name: str,
        folder: str,
        url: str | None,
        files: Sequence[Mapping[str, Any]],
        statistics: Mapping[str, Any],
        given: str | None,
        data_dir: str | Path,
        mirror: str | Path | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.files = [
            RemoteFile(
                f"{folder}/{file.get('name', PurePosixPath(file['path']).name)}",
                None if url is None else f"{url}/{file['path']}",
                file["sha256"],
            )
            for file in files
        ]
        self.num_classes = int(statistics["num_classes"])
        self.statistics = {
            key: list(value) if isinstance(value, Sequence) else value
            for key, value in statistics.items()
        }
        self.given = given
        self.data_dir = Path(data_dir)
        self.mirror = mirror

    def download(self) -> list[Path]:
        """Fetch the raw files and return where they are."""
        return [fetch(file, self.data_dir, self.mirror) for file in self.files]

    @property
    def variant(self) -> str:
        """What `read` depends on besides files and `revision`, for the processed file's name."""
        return ""

    @abstractmethod
    def read(self, paths: list[Path]) -> Data:
        """Read the raw files, in the order of `files`, into the graph as it came.

        Returns:
            `x`, `edge_index`, `y`, if there are given splits `given_train`, `given_val` and
            `given_test` `[nodes, splits]`, and if some nodes have no label `labelled [nodes]`.
        """

    def load(self) -> Data:
        """Return the graph, with `given` and the given splits if it has some.

        Raises:
            UsageError: A file cannot be had, is corrupt or malformed, features or labels are
                unusable, or the graph does not have the stated statistics.
        """
        paths = self.download()
        sums = "".join(pooch.file_hash(str(path), alg="sha256") for path in paths)
        key = f"{self.name}{self.variant}-{hashlib.sha256(sums.encode()).hexdigest()[:16]}"
        processed = paths[0].parent.parent / "processed"
        tensors = cached(processed, key, lambda: self._process(paths), self.revision)
        data = _unpacked(tensors)
        self._check(data, tensors)
        if self.given is not None:
            data.given = self.given
        return data

    @property
    def disk_key(self) -> str:
        """A name for the graph: equal for the same files, told by their sizes and times."""
        stats = [path.stat() for path in self.download()]
        sizes = [(stat.st_size, stat.st_mtime_ns) for stat in stats]
        known = f"{self.variant} {self.revision} {sizes}"
        return f"{self.name}-{hashlib.sha256(known.encode()).hexdigest()[:16]}"

    def _process(self, paths: list[Path]) -> dict[str, Tensor]:
        try:
            raw = self.read(paths)
        except UsageError:
            raise
        except Exception as error:  # what a malformed file does to its reader is anybody's guess
            clear_frames(error.__traceback__)  # closes the files that the reader left open
            raise UsageError(
                f"the raw files of {self.name} in {paths[0].parent} cannot be read "
                f"({type(error).__name__}: {error}): delete them and run again to fetch fresh ones."
            ) from error
        try:
            return _packed(raw, cleaned(raw, self.num_classes))
        except UsageError as error:
            raise UsageError(f"{self.name}: {error}") from error

    def _check(self, data: Data, tensors: dict[str, Tensor]) -> None:
        counts = class_counts(data)
        found = {
            "num_nodes": data.num_nodes,
            "raw_edges": int(tensors["raw_edges"]),
            "num_edges": data.num_edges // 2,
            "num_features": data.num_features,
            "num_classes": len(counts),
            "class_counts": counts,
            "homophily": round(float(tensors["raw_homophily"]), 4),
            "given_sizes": [int(data[name][:, 0].sum()) for name in GIVEN if name in data],
        }
        check_found(self.name, found, self.statistics)


def check_found(name: str, found: Mapping[str, Any], statistics: Mapping[str, Any]) -> None:
    """Refuse a graph of which some statistics, those that are found, are not what they must be.

    Raises:
        UsageError: See `check_statistics`.
    """
    expected = {WORDS[key]: value for key, value in statistics.items()}
    known = {WORDS[key]: value for key, value in found.items()}
    check_statistics(name, known, {word: expected[word] for word in known if word in expected})


def class_counts(data: Data) -> list[int]:
    """Number of nodes of each class, or with each label."""
    if data.y.dim() == 2:
        return data.y.sum(dim=0).tolist()
    return torch.bincount(data.y[data.labelled] if "labelled" in data else data.y).tolist()


def _packed(raw: Data, data: Data) -> dict[str, Tensor]:
    """The cleaned graph as tensors, features that are mostly 0 without their zeros."""
    return {
        **_packed_features(data.x),
        "y": data.y,
        "edge_index": data.edge_index,
        "raw_edges": torch.tensor(raw.num_edges),
        "raw_homophily": torch.tensor(_raw_homophily(raw, data), dtype=torch.float64),
        **{name: raw[name].bool() for name in (*GIVEN, "labelled") if name in raw},
    }


def _packed_features(x: Tensor) -> dict[str, Tensor]:
    if 2 * int(x.count_nonzero()) > x.numel():
        return {"x": x}
    sparse = csr_array(x.numpy())
    return {
        "x_values": torch.from_numpy(sparse.data),
        "x_columns": torch.from_numpy(sparse.indices),
        "x_rows": torch.from_numpy(sparse.indptr),
        "x_shape": torch.tensor(x.shape),
    }


def _raw_homophily(raw: Data, data: Data) -> float:
    """Of the edges between nodes that have a class; NaN if nodes have several."""
    if data.y.dim() == 2:
        return float("nan")
    edges = raw.edge_index
    if "labelled" in raw:
        edges = edges[:, raw.labelled[edges].all(dim=0)]
    return homophily(edges, data.y)


def _unpacked(tensors: dict[str, Tensor]) -> Data:
    x = tensors["x"] if "x" in tensors else _unpacked_features(tensors)
    return Data(
        x=x,
        y=tensors["y"],
        edge_index=tensors["edge_index"],
        num_nodes=len(x),
        **{name: tensors[name] for name in (*GIVEN, "labelled") if name in tensors},
    )


def _unpacked_features(tensors: dict[str, Tensor]) -> Tensor:
    parts = (tensors[name].numpy() for name in ("x_values", "x_columns", "x_rows"))
    x: np.ndarray = csr_array(tuple(parts), shape=tuple(tensors["x_shape"].tolist())).toarray()
    return torch.from_numpy(x)

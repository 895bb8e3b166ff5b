"""Graphs with features and labels from files: fetched, read once, cleaned, checked, cached."""

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path
from traceback import clear_frames
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.files.checks import check_statistics
from curvlab.data.files.cleaning import cleaned, homophily
from curvlab.data.files.sources import Downloaded
from curvlab.errors import UsageError
from curvlab.options import Incidental

GIVEN = ("given_train", "given_val", "given_test")


class LabelledGraph(Downloaded, ABC):
    """A graph of node classification; a subclass reads its raw files.

    The graph is cleaned (`curvlab.data.files.cleaning`) and kept on disk. The statistics are
    asserted whenever it is loaded, so that a file that parses but is another graph is noticed.
    They are `num_nodes`, `raw_edges` (of the edge list as it came), `num_edges` (undirected, after
    cleaning), `num_features`, `num_classes` and `class_counts`. `homophily` is of the edge list as
    it came, to four digits; `given_sizes` are the nodes of the three parts of the first given
    split. Of several labels a node, classes are the labels, and there is no homophily.

    Args:
        given: name of the splits that come with the graph; null if there are none.
        **options: of `Downloaded`.
    """

    def __init__(self, given: Incidental[str | None] = None, **options: Any) -> None:
        super().__init__(**options)
        self.given = given
        if "num_classes" not in self.statistics:
            raise UsageError("dataset.source.statistics lacks num_classes: say how many there are")
        self.num_classes = int(str(self.statistics["num_classes"]))

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
        tensors = self.processed(self._process)
        data = _unpacked(tensors)
        self._check(data, tensors)
        if self.given is not None:
            data.given = self.given
        return data

    @property
    def disk_key(self) -> str:
        """A name for the graph: equal for the same files, known by their sizes and times."""
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
        check_statistics(self.name, found, self.statistics)


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

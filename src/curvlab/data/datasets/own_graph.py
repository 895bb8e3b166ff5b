"""Users' graphs: read from local files, summarised, cached by content."""

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from curvlab.checked import CheckedFields
from curvlab.checksums import checksum
from curvlab.data.datasets.labelled import GIVEN_MASKS, class_counts
from curvlab.data.files.cache import cached_graph, content_key
from curvlab.data.files.cleaning import check_features, check_labels
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.options import Passed, UserFile

log = logging.getLogger(__name__)

REPORTED = "CURVLAB_REPORTED"
"""Variable of the environment with marks of the reports that a command has printed."""

COUNTS = {
    "self_loops": "from a node to itself",
    "repeated": "repeated",
    "both_ways": "given in both directions",
}
"""Edges that a reader leaves out or merges."""


class OwnGraph(CheckedFields, ABC):
    """A user's graph, cached by the content of its files, options and `revision`.

    Args:
        path: path of the file or folder.
        weighted: use the weights of edges; those of repeated edges are added, but for a list of
            every edge in both directions with one weight, which counts once.
        directed: edges go from the first end to the second, for models that can use it.
        known: names that a trained model has for classes and features.
        name: name of the data set, in the name of the entry on disk.
        data_dir: folder of the cache; None: no cache.
    """

    # 4: decimal commas, numbers of edges, ids that end in .0, one weight of edges listed both ways
    revision: ClassVar[int] = 4

    path: UserFile[str | None] = None
    weighted: bool = False
    directed: bool = False
    known: Passed[Vocabulary | None] = None
    name: Passed[str] = "graph"
    data_dir: Passed[str | Path | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.place = Path(self.path or "path=None").expanduser()
        self.title = str(self.place)
        self.remarks: list[str] = []
        self.counts: dict[str, int] = {}

    @abstractmethod
    def download(self) -> list[Path]:
        """Return the paths of the files."""

    @abstractmethod
    def read(self) -> Data:
        """Read the files into a graph, by `assemble`."""

    def assemble(
        self,
        ids: pd.Index,
        ends: np.ndarray,
        weight: np.ndarray | None = None,
        x: np.ndarray | None = None,
        columns: Sequence[str] | None = None,
        labels: Tensor | None = None,
        classes: Sequence[str] | None = None,
        masks: Mapping[str, Tensor] | None = None,
    ) -> Data:
        """Make the graph of edges `ends [2, edges]` between the nodes with these ids.

        `columns` name features, `labels` are -1 where there is none, `masks` `[nodes, splits]`.
        """
        data = simple_graph(ends, len(ids), weight, self.directed)
        if weight is not None and (data.repeated or data.both_ways):
            self.remarks.append(_describe_weights(data))
        del data["listed_twice"]
        is_labelled = torch.tensor([True])
        if labels is not None:
            data.y = labels
            is_labelled = labels >= 0
            if not bool(is_labelled.all()):
                data.labelled = is_labelled
        masks = masks or {}
        splits = max((mask.shape[1] for mask in masks.values()), default=0)
        for name, mask in masks.items():
            data[name] = mask.expand(-1, splits) & is_labelled.unsqueeze(1)
            data.given = "given"
        if masks:
            parts_of_node = torch.stack([data[name] for name in masks]).sum(0)
            if bool((parts_of_node > 1).any()):
                raise UsageError(f"{self.title} has a node in two parts of its split: keep one.")
        if x is not None:
            data.x = torch.tensor(x, dtype=torch.float64)  # until it is scaled
        data.vocabulary = Vocabulary(nodes=tuple(ids), classes=classes, features=columns)
        return data

    def load(self, say: Callable[[str], None] = log.info) -> Data:
        """Return the graph, and report its sizes and columns by `say`, once per command."""
        folder = None if self.data_dir is None else Path(self.data_dir) / "processed"
        data = cached_graph(folder, self.disk_key, self._check) if folder else self._check()
        self.remarks = data.remarks
        self.counts = {name: data[name] for name in COUNTS}
        for name in ("remarks", *COUNTS):
            del data[name]
        say_once(self.report(data), say)
        return data

    def _check(self) -> Data:
        """Read the graph, and refuse features and labels that cannot be trained on."""
        self.remarks = []
        data = self.read()
        data.remarks = self.remarks
        if data.x is not None:
            check_features(data)
        if data.y is not None:
            check_labels(data)
        return data

    def report(self, data: Data) -> str:
        """Sizes, columns, classes and split of the graph, in lines."""
        directed = "edge_forward" in data
        edges = int(data.edge_forward.sum()) if directed else data.num_edges // 2
        merged = ", ".join(f"{n:,} {COUNTS[name]}" for name, n in self.counts.items() if n)
        says = [f"{data.num_nodes:,} nodes", f"{edges:,} {'directed ' if directed else ''}edges"]
        says[1] += f" (merged or left out: {merged})" if merged else ""
        says += ["weighted"] if "edge_weight" in data else []
        features = f"{data.num_features or 'no'} feature"
        if data.num_features != 1:
            features += "s"
        lines = [f"{self.title}: {', '.join(says)}, {features}"]
        lines += self.remarks
        if data.y is not None:
            counts = class_counts(data)
            names = vocabulary_of(data).classes or range(len(counts))
            class_sizes = ", ".join(f"{name} {n:,}" for name, n in zip(names, counts, strict=False))
            unknown = int((~data.labelled).sum()) if "labelled" in data else 0
            remark = f"; {unknown:,} nodes without a label" if unknown else ""
            sizes = " / ".join(
                f"{int(data[name][:, 0].sum()):,}" for name in GIVEN_MASKS if name in data
            )
            split = f"its own, {sizes}" if sizes else "none of its own"
            lines += [
                f"{len(counts)} classes: {shorten(class_sizes, 160, placeholder=' ...')}{remark}",
                f"split: {split}; classes and split are used by task=node_classification",
            ]
        return "\n  ".join(lines)

    @property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.load())

    @property
    def disk_key(self) -> str:
        """A key of the cached graph from its files, options and reader."""
        not_options = ("path", "nodes", "place", "title", "name", "data_dir", "remarks", "counts")
        options = {name: value for name, value in vars(self).items() if name not in not_options}
        return content_key(self.name, checksum(self.download()), options, self.revision)


def say_once(report: str, say: Callable[[str], None]) -> None:
    """Say a report, once per command."""
    mark = content_key("report", report)
    marks = os.environ.get(REPORTED, "")
    if mark not in marks:
        os.environ[REPORTED] = f"{marks} {mark}"  # for processes that this one starts, too
        say(report)


def simple_graph(ends: np.ndarray, nodes: int, weight: np.ndarray | None, directed: bool) -> Data:
    """Both directions of every edge once, no loops; weights of merged edges are added.

    If all edges are given in both directions with equal weights, as an undirected graph is often
    written, each weight counts once, and `listed_twice` is true. The reverse of a directed edge has
    `edge_forward [edges]` false and weight 0.
    """
    proper = ends[0] != ends[1]
    arcs = torch.from_numpy(ends[:, proper])
    values = torch.ones(int(proper.sum())).double()
    if weight is not None:
        values = torch.from_numpy(weight[proper])
    arcs, values = coalesce(arcs, values, num_nodes=nodes, reduce="sum")
    count = arcs.shape[1]
    listed_twice = weight is not None and not directed and _is_symmetric(arcs, values, nodes)
    if listed_twice:
        is_first = arcs[0] < arcs[1]
        arcs = arcs[:, is_first]
        values = values[is_first]
    both_ways = torch.cat([arcs, arcs.flip(0)], dim=1)
    back = torch.zeros_like(values) if directed else values
    index, total = coalesce(both_ways, torch.cat([values, back]), num_nodes=nodes, reduce="sum")
    if not index.shape[1]:
        raise UsageError(
            f"none of the graph's {ends.shape[1]} edges joins two nodes: there is nothing to learn "
            "from; check the file of edges."
        )
    data = Data(edge_index=index.contiguous(), num_nodes=nodes)
    data.self_loops = int((~proper).sum())
    data.repeated = int(proper.sum()) - count
    data.both_ways = 0 if directed else count - len(total) // 2
    data.listed_twice = listed_twice
    if directed:
        data.edge_forward = total > 0
    if weight is not None:
        data.edge_weight = total.float()
    return data


def _is_symmetric(arcs: Tensor, values: Tensor, nodes: int) -> bool:
    """Whether a sorted list of arcs has each of them in both directions, with equal values."""
    reversed_arcs, reversed_values = coalesce(arcs.flip(0), values, num_nodes=nodes)
    is_equal = torch.equal(arcs, reversed_arcs)
    return is_equal and torch.allclose(values, reversed_values, rtol=1e-9, atol=0)


def _describe_weights(data: Data) -> str:
    """Say what became of the weights of edges that are given more than once."""
    texts = []
    if data.repeated:
        texts.append(f"those of {data.repeated:,} repeated edges are added")
    if data.listed_twice:
        texts.append("all edges are given both ways with one weight, which counts once")
    elif data.both_ways:
        texts.append(
            f"the two of {data.both_ways:,} edges that are given both ways are added "
            "(dataset.source.directed=true keeps them apart)"
        )
    return f"weights: {'; '.join(texts)}"

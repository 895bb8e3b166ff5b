"""Graphs of a user's own: read from files at hand, counted, kept on disk by their content."""

import hashlib
import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.checksums import checksum
from curvlab.data.datasets.graph_tables import (
    NumberedEdges,
    add_given_split,
    classes_in,
    features_in,
    node_table,
    numbered,
    parts_in,
    simple_graph,
)
from curvlab.data.datasets.labelled import GIVEN, class_counts
from curvlab.data.files.cache import cached_graph
from curvlab.data.files.checks import check_features, check_labels
from curvlab.data.files.tables import Table
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.options import Incidental, Passed

log = logging.getLogger(__name__)

SAID = "CURVLAB_SAID"
"""Variable of the environment with marks of what a command has said."""

COUNTS = {
    "self_loops": "from a node to itself",
    "repeated": "repeated",
    "both_ways": "given in both directions",
}
"""What a reader leaves out or merges, counted."""


@dataclass(eq=False)
class OwnGraph(Checked, ABC):
    """A graph without statistics in its configuration: they are counted and logged when read.

    What is read is kept in the folder `processed` of `data_dir`, by the content of the files, the
    options and the `revision`.

    Args:
        path: where it is.
        weighted: use the weights of edges; those of repeated edges are added.
        mutual: of directed edges keep those that go both ways.
        directed: edges go from the first end to the second, for models that can use it; else both
            ways.
        ignore: columns of nodes that are not used.
        known: names that a trained model has for classes and features.
        name: of the data set, in the name of the entry on disk.
        data_dir: folder of what is kept; None: nothing is.

    Attributes:
        revision: raised whenever the same files are read into another graph.
        place: the path, without `~`.
    """

    revision: ClassVar[int] = 1

    path: Incidental[str | None] = None
    weighted: bool = False
    mutual: bool = False
    directed: bool = False
    ignore: Sequence[str] = ()
    known: Passed[Vocabulary | None] = None
    name: Passed[str] = "graph"
    data_dir: Passed[str | Path | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mutual and self.directed:
            raise UsageError(
                "mutual=True keeps edges that go both ways, of which none has a direction: drop "
                "directed=True, or mutual=True"
            )
        self.place = Path(self.path or "path=None").expanduser()

    @property
    def what(self) -> str:
        """The graph in messages: where it is."""
        return str(self.place)

    @abstractmethod
    def download(self) -> list[Path]:
        """Return where the files are.

        Raises:
            UsageError: one is missing, or is no file.
        """

    @abstractmethod
    def read(self) -> Data:
        """Read the files into a graph, by `from_tables` or `assembled`."""

    def from_tables(
        self, edges: Table, nodes: Table | None = None, features: np.ndarray | None = None
    ) -> Data:
        """Make the graph of a table of edges, and perhaps of nodes, and features of the nodes.

        Raises:
            UsageError: what does not fit together.
        """
        nodes = None if nodes is None else node_table(nodes, self.ignore)
        ids = None if nodes is None else pd.Index(nodes.frame["id"])
        rows = None if features is None else len(features)
        return self.assembled(numbered(edges, ids, rows, self.weighted), nodes, features)

    def assembled(
        self,
        edges: NumberedEdges,
        nodes: Table | None = None,
        features: np.ndarray | None = None,
        masks: Mapping[str, Tensor] | None = None,
    ) -> Data:
        """Put edges, features, classes and split together.

        Args:
            edges: with the ids of the nodes.
            nodes: their table, in the order of the ids.
            features: `[nodes, features]`, if they are not in the table.
            masks: `given_train`, `given_val`, `given_test` `[nodes, splits]`.

        Returns:
            The graph that `simple_graph` makes with `vocabulary`, and as far as there are such `x`,
            `y`, `labelled` and the split.

        Raises:
            UsageError: what does not fit together.
        """
        data = simple_graph(edges, self.mutual, self.directed)
        known, classes, columns = self.known or Vocabulary(), None, []
        if nodes is not None:
            left = nodes.frame.columns.drop(["id", "label", "split"], errors="ignore")
            columns = list(known.features or left)
            if "label" in nodes.frame:
                data.y, classes = classes_in(nodes, known.classes)
                if bool((data.y < 0).any()):
                    data.labelled = data.y >= 0
                add_given_split(data, masks or parts_in(nodes), self.what)
            if columns and features is not None:
                raise UsageError(
                    f"{self.what} has features in the column {columns[0]!r} of its nodes and in a "
                    f"file: keep one, for instance by ignore=[{','.join(columns[:3])}]."
                )
            features = features_in(nodes, columns) if columns else features
        if features is not None:
            if len(features) != len(edges.ids):
                raise UsageError(
                    f"{self.what} has {len(features)} rows of features, but {len(edges.ids)} "
                    "nodes: give one row per node, in the same order."
                )
            data.x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        names = tuple(columns) or None
        data.vocabulary = Vocabulary(nodes=tuple(edges.ids), classes=classes, features=names)
        return data

    def load(self, say: Callable[[str], None] = log.info) -> Data:
        """Return the graph, and report what is in it once a command.

        Args:
            say: takes what there is to report.

        Raises:
            UsageError: a file is missing or malformed.
        """
        data = (
            self._checked()
            if self.data_dir is None
            else cached_graph(Path(self.data_dir) / "processed", self.disk_key, self._checked)
        )
        text = described(self.what, data)
        mark, said = hashlib.sha256(text.encode()).hexdigest()[:16], os.environ.get(SAID, "")
        if mark not in said:
            os.environ[SAID] = f"{said} {mark}"  # for processes that this one starts, too
            say(text)
        for count in COUNTS:
            del data[count]
        return data

    def _checked(self) -> Data:
        data = self.read()
        if data.x is not None:
            check_features(data)
        if data.y is not None:
            check_labels(data)
        return data

    @property
    def vocabulary(self) -> Vocabulary:
        """The names of all nodes, classes and features."""
        return vocabulary_of(self.load())

    @property
    def disk_key(self) -> str:
        """A name for the graph on disk: equal for the same files, options and reader."""
        apart = ("path", "place", "name", "data_dir")
        options = {name: value for name, value in vars(self).items() if name not in apart}
        contents = [checksum(self.download()), options, self.revision]
        known = json.dumps(contents, sort_keys=True, default=str)
        return f"{self.name}-{hashlib.sha256(known.encode()).hexdigest()[:16]}"


def described(what: str, data: Data) -> str:
    """What a run says of a graph at its start."""
    directed = "edge_forward" in data
    edges = int(data.edge_forward.sum()) if directed else data.num_edges // 2
    merged = [f"{data[count]:,} {kind}" for count, kind in COUNTS.items() if data[count]]
    left_out = f" (merged or left out: {', '.join(merged)})" if merged else ""
    weighted = ", weighted" if "edge_weight" in data else ""
    text = (
        f"{what}: {data.num_nodes:,} nodes, {edges:,} {'directed ' if directed else ''}edges"
        f"{left_out}{weighted}, {data.num_features or 'no'} features"
    )
    if data.y is None:
        return text
    counts = class_counts(data)
    names = vocabulary_of(data).classes or range(len(counts))
    shown = ", ".join(f"{name} {n:,}" for name, n in zip(names, counts, strict=False))
    text += f"\n  {len(counts)} classes: {shorten(shown, 160, placeholder=' ...')}"
    if "labelled" in data:
        text += f"; {int((~data.labelled).sum()):,} nodes without a label"
    sizes = [f"{int(data[name][:, 0].sum()):,}" for name in GIVEN if name in data]
    split = f"its own, {' / '.join(sizes)}" if sizes else "none of its own"
    return f"{text}\n  split: {split}; classes and split are used by task=node_classification"

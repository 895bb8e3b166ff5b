"""Graphs of a user's own: read from files at hand, counted, kept on disk by their content."""

import hashlib
import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.checksums import checksum
from curvlab.data.datasets.labelled import GIVEN, class_counts
from curvlab.data.files.cache import cached
from curvlab.data.files.checks import check_features, check_labels
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.options import Incidental, Passed

log = logging.getLogger(__name__)

SHOWN_CLASSES = 10
SAID = "CURVLAB_SAID"
"""Variable of the environment with marks of what a command has said."""

_SAID: set[str] = set()  # marks of what this process has

COUNTS = ("self_loops", "repeated", "both_ways")
"""What a reader leaves out or merges, counted."""


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
        known: names that a trained model has for classes and features.
        name: of the data set, in the name of the entry on disk.
        data_dir: folder of what is kept; None: nothing is.

    Attributes:
        revision: raised whenever the same files are read into another graph.
    """

    revision = 1

    def __init__(
        self,
        path: Incidental[str | None] = None,
        weighted: bool = False,
        mutual: bool = False,
        directed: bool = False,
        known: Passed[Vocabulary | None] = None,
        name: Passed[str] = "graph",
        data_dir: Passed[str | Path | None] = None,
    ) -> None:
        if mutual and directed:
            raise UsageError(
                "mutual=True keeps edges that go both ways, of which none has a direction: drop "
                "directed=True, or mutual=True"
            )
        self.path = None if path is None else Path(path).expanduser()
        self.weighted = weighted
        self.mutual = mutual
        self.directed = directed
        self.known = known
        self.name = name
        self.data_dir = data_dir

    @property
    def what(self) -> str:
        """The graph in messages: where it is."""
        return str(self.path)

    @property
    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """What the graph depends on beside its files."""

    @abstractmethod
    def download(self) -> list[Path]:
        """Return where the files are.

        Raises:
            UsageError: one is missing, or is no file.
        """

    @abstractmethod
    def read(self) -> Data:
        """Read the files.

        Returns:
            As `curvlab.data.datasets.graph_from_tables.graph_of`.
        """

    def load(self, say: Callable[[str], None] = log.info) -> Data:
        """Return the graph, and report what is in it once a command.

        Args:
            say: takes what there is to report.

        Raises:
            UsageError: a file is missing or malformed.
        """
        data = self._read() if self.data_dir is None else self._cached(Path(self.data_dir))
        text = "\n".join(described(self.what, data))
        if _is_news(text):
            say(text)
        for name in COUNTS:
            del data[name]
        return data

    def _read(self) -> Data:
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
        return self._key(self.revision)

    def _key(self, *revision: int) -> str:
        contents = [checksum(self.download()), self.options, *revision]
        known = json.dumps(contents, sort_keys=True, default=str)
        return f"{self.name}-{hashlib.sha256(known.encode()).hexdigest()[:16]}"

    def _cached(self, data_dir: Path) -> Data:
        folder = data_dir / "processed"
        return _unpacked(cached(folder, self._key(), lambda: _packed(self._read()), self.revision))


def tell_processes() -> None:
    """Let processes that this one starts, as those of a sweep's runs, not say again what it has."""
    os.environ[SAID] = " ".join(sorted(_SAID))


def _is_news(text: str) -> bool:
    """Whether neither this process nor the command that started it has said so."""
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    said = mark in _SAID or mark in os.environ.get(SAID, "").split()
    _SAID.add(mark)
    return not said


def described(what: str, data: Data) -> list[str]:
    """What a run says of a graph at its start."""
    directed = "edge_forward" in data
    edges = int(data.edge_forward.sum()) if directed else data.num_edges // 2
    kinds = ("from a node to itself", "repeated", "given in both directions")
    merged = [
        f"{data[name]:,} {kind}" for name, kind in zip(COUNTS, kinds, strict=True) if data[name]
    ]
    left_out = f" (merged or left out: {', '.join(merged)})" if merged else ""
    weighted = ", weighted" if "edge_weight" in data else ""
    lines = [
        f"{what}: {data.num_nodes:,} nodes, {edges:,} {'directed ' if directed else ''}edges"
        f"{left_out}{weighted}, "
        f"{f'{data.num_features:,} features' if data.x is not None else 'no features'}"
    ]
    if data.y is not None:
        counts = class_counts(data)
        names = vocabulary_of(data).classes or range(len(counts))
        shown = [f"{name} {n:,}" for name, n in zip(names, counts, strict=False)]
        more = f", {len(counts) - SHOWN_CLASSES} more" if len(counts) > SHOWN_CLASSES else ""
        lines.append(f"  {len(counts)} classes: {', '.join(shown[:SHOWN_CLASSES])}{more}")
        if "labelled" in data:
            lines[-1] += f"; {int((~data.labelled).sum()):,} nodes without a label"
        sizes = [int(data[name][:, 0].sum()) for name in GIVEN if name in data]
        split = f"its own, {' / '.join(f'{n:,}' for n in sizes)}" if sizes else "none of its own"
        lines.append(f"  split: {split}; classes and split are used by task=node_classification")
    return lines


def _packed(data: Data) -> dict[str, Tensor]:
    """The graph as tensors, names as the bytes of their list."""
    names = json.dumps({k: v for k, v in vars(data.vocabulary).items() if v is not None})
    tensors = {name: value for name, value in data if isinstance(value, Tensor)}
    return tensors | {
        "names": torch.frombuffer(bytearray(names.encode()), dtype=torch.uint8),
        "counts": torch.tensor([int(data.num_nodes or 0), *(data[name] for name in COUNTS)]),
    }


def _unpacked(tensors: dict[str, Tensor]) -> Data:
    rest = dict(tensors)
    names = json.loads(rest.pop("names").numpy().tobytes())
    num_nodes, *counts = rest.pop("counts").tolist()
    data = Data(**rest, num_nodes=num_nodes, **dict(zip(COUNTS, counts, strict=True)))
    data.vocabulary = Vocabulary(**{name: tuple(words) for name, words in names.items()})
    if GIVEN[0] in rest:
        data.given = "given"
    return data

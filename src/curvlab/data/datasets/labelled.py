"""Graphs with features and labels from files: fetched, read once, cleaned, checked, cached."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from curvlab.data.files.cache import content_key
from curvlab.data.files.cleaning import clean
from curvlab.data.files.sources import Downloaded
from curvlab.options import Incidental

GIVEN_MASKS = ("given_train", "given_val", "given_test")


def missing_mask(title: str, there: Sequence[str], lacking: Sequence[str]) -> str:
    """The refusal of a split without one of its masks, up to the way to drop the split."""
    return (
        f"{title} has {there[0]} and none that is called {lacking[0]}: add it, or drop the split by"
    )


class LabelledGraph(Downloaded, ABC, kw_only=True):
    """A graph of node classification; a subclass reads its raw files.

    The statistics are asserted whenever it is loaded: `num_nodes`, `num_edges` (undirected),
    `num_features`, `num_classes`, `class_counts`; `raw_edges` and `homophily` (to four digits) of
    the edge list as it came; `given_sizes`, of the first given split.

    Args:
        given: name of the splits that come with the graph; null if there are none.
    """

    given: Incidental[str | None] = None

    @abstractmethod
    def read(self, paths: list[Path]) -> Data:
        """Return the raw graph, optionally with given splits and `labelled [nodes]`."""

    def load(self) -> Data:
        data = super().load()
        del data["raw_edges"], data["homophily"]
        if self.given is not None:
            data.given = self.given
        return data

    def facts(self, data: Data) -> Mapping[str, Any]:
        counts = class_counts(data)
        return {
            "num_nodes": data.num_nodes,
            "num_edges": data.num_edges // 2,
            "num_features": data.num_features,
            "num_classes": len(counts),
            "class_counts": counts,
            "given_sizes": [int(data[name][:, 0].sum()) for name in GIVEN_MASKS if name in data],
            "raw_edges": data.raw_edges,
            "homophily": data.homophily,
        }

    @property
    def disk_key(self) -> str:
        """A key of the graph from the sizes and times of its files."""
        stats = [path.stat() for path in self.download()]
        sizes = [(stat.st_size, stat.st_mtime_ns) for stat in stats]
        return content_key(self.name, self.variant, self.revision, sizes)

    def process(self, paths: list[Path]) -> Data:
        raw = self.read(paths)
        names = ("x", "y", "edge_index", "num_nodes", "labelled", "without_edges", *GIVEN_MASKS)
        raw = Data(**{name: raw[name] for name in names if name in raw})
        data = clean(raw, self.statistics["num_classes"])
        edges = raw.edge_index
        if "labelled" in raw:
            edges = edges[:, raw.labelled[edges].all(dim=0)]
        share = nan if data.y.dim() == 2 else homophily(edges, data.y)
        data.raw_edges = raw.num_edges
        data.homophily = round(share, 4)
        return data


def class_counts(data: Data) -> list[int]:
    """The number of nodes of each class, or with each label."""
    if data.y.dim() == 2:
        return data.y.sum(dim=0).tolist()
    labels = data.y[data.labelled] if "labelled" in data else data.y
    return torch.bincount(labels).tolist()

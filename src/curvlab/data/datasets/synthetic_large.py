"""A generated graph of any size: power-law degrees, classes, features."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Gt
from torch_geometric.data import Data

from curvlab.data.files.cache import content_key
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.disk_graph import CHUNK_ROWS, DiskGraph
from curvlab.data.files.sources import Generated, graph_bytes
from curvlab.options import NonNegativeFloat, PositiveFloat, PositiveInt, Seed, Share

DRAWN_EDGES = 2**23
"""Edges that are drawn at a time; of graphs with more, another number would make another graph."""


class SyntheticLarge(Generated):
    """A degree-corrected stochastic block model with Gaussian features.

    Node v has a class y_v, each with equal probability, and a propensity w_v, `P(w > t) = t^(1 -
    exponent)` for t > 1. Each of `num_nodes * mean_degree / 2` edges joins nodes drawn in
    proportion to w, with probability `homophily` of one class, else of two; repeated edges and
    loops do not count. Features are `signal m_(y_v) + e_v`, m a random unit vector for each class,
    e standard Gaussian noise. Source: Karrer and Newman 2011.

    Args:
        num_nodes: number of nodes.
        mean_degree: mean number of neighbours, before duplicates and loops are left out.
        exponent: exponent of the density of degrees, `p(d) ~ d^-exponent`; above 2, so that degrees
            have a mean.
        classes: number of classes, at most `num_nodes`.
        homophily: probability that an edge joins two nodes of a class.
        features: number of features.
        signal: length of the mean of a class's features; their noise has standard deviation 1.
    """

    num_nodes: Annotated[int, Ge(2)] = 1000000
    mean_degree: PositiveFloat = 10.0
    exponent: Annotated[float, Gt(2)] = 2.5
    classes: Annotated[int, Ge(2)] = 10
    homophily: Share = 0.6
    features: PositiveInt = 32
    signal: NonNegativeFloat = 1.0
    seed: Seed = 0

    revision: ClassVar[int] = 1

    def load(self) -> Data:
        generator = np.random.default_rng(self.seed)
        y = self._classes(generator)
        none = np.empty((2, 0), dtype=np.int64)  # few nodes and a low degree may make no edge
        edges = torch.from_numpy(np.concatenate([none, *self._edges(y, generator)], axis=1))
        (x,) = self._features(y, generator, self.num_nodes)
        return Data(
            x=torch.from_numpy(x),
            y=torch.from_numpy(y),
            edge_index=simple_edges(edges, self.num_nodes),
            num_nodes=self.num_nodes,
        )

    @property
    def memory_bytes(self) -> int:
        return graph_bytes(self.num_nodes, self._count, self.features)

    @property
    def disk_key(self) -> str:
        return content_key("synthetic-large", asdict(self), DRAWN_EDGES, self.revision)

    def to_disk(self, folder: Path) -> DiskGraph:
        """Write the same graph to a folder, its edges and features a piece at a time."""
        generator = np.random.default_rng(self.seed)
        graph = DiskGraph.create(folder)
        y = self._classes(generator)
        graph.write_edges(self._edges(y, generator), self.num_nodes)
        graph.write_features(self._features(y, generator, CHUNK_ROWS), self.features)
        graph.write_labels(np.arange(self.num_nodes), y, {})
        graph.declare(given=None)
        return graph

    @property
    def _count(self) -> int:
        """The number of edges to draw."""
        return round(self.num_nodes * self.mean_degree / 2)

    def _classes(self, generator: np.random.Generator) -> np.ndarray:
        """Classes of the nodes; each class has at least one node."""
        y = generator.integers(0, self.classes, self.num_nodes)
        y[: self.classes] = np.arange(self.classes)
        return y

    def _features(
        self, y: np.ndarray, generator: np.random.Generator, rows: int
    ) -> Iterator[np.ndarray]:
        """Features `[at most rows, features]` of one block of nodes after the other."""
        means = generator.standard_normal((self.classes, self.features), dtype=np.float32)
        means *= self.signal / np.linalg.norm(means, axis=1, keepdims=True)
        for first in range(0, len(y), rows):
            block = y[first : first + rows]
            noise = generator.standard_normal((len(block), self.features), dtype=np.float32)
            yield noise + means[block]

    def _edges(self, y: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """Ends of the edges as drawn, `[2, count]`, `num_nodes * mean_degree / 2` in all."""
        propensity = (1 - generator.random(self.num_nodes)) ** (-1 / (self.exponent - 1))
        # In the order of classes, every class is an interval of the running total.
        order = np.argsort(y, kind="stable")
        total = np.cumsum(propensity[order])
        ends = np.cumsum(np.bincount(y, minlength=self.classes))
        upper = total[ends - 1]
        lower = np.concatenate([[0.0], upper[:-1]])

        def draw(low: np.ndarray | float, high: np.ndarray | float, count: int) -> np.ndarray:
            position = low + (high - low) * generator.random(count)
            return order[np.searchsorted(total[:-1], position, side="right")]

        for first in range(0, self._count, DRAWN_EDGES):
            count = min(DRAWN_EDGES, self._count - first)
            source = draw(0.0, total[-1], count)
            elsewhere = generator.random(count) >= self.homophily
            shift = generator.integers(1, self.classes, count)
            target_class = (y[source] + elsewhere * shift) % self.classes
            target = draw(lower[target_class], upper[target_class], count)
            yield np.stack([source, target])

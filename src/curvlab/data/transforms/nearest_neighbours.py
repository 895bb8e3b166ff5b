"""Graphs that join each point to its nearest neighbours."""

import logging
from abc import abstractmethod
from pathlib import Path
from typing import Annotated

import torch
from annotated_types import Ge
from sklearn.neighbors import kneighbors_graph
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import LabelledGraph

log = logging.getLogger(__name__)


def nearest_neighbours(x: Tensor, neighbours: int) -> Tensor:
    """Edges `[2, nodes * neighbours]` from each point to its nearest, itself among them.

    Source: Hypformer and NodeFormer, by scikit-learn's `kneighbors_graph(include_self=True)`.
    """
    if neighbours > len(x):
        log.warning("neighbours=%d of %d points: each is joined to all others", neighbours, len(x))
        neighbours = len(x)
    edges = kneighbors_graph(x.numpy(), neighbours, include_self=True).tocoo()
    source = torch.from_numpy(edges.row).long()
    target = torch.from_numpy(edges.col).long()
    return torch.stack([source, target])


class NearestNeighbourGraph(LabelledGraph, kw_only=True):
    """A graph of nearest neighbours, made undirected; a subclass reads the points.

    Args:
        neighbours: number of nearest points that a point is joined to, itself the first; null: no
            edges.
    """

    neighbours: Annotated[int, Ge(2)] | None = 5

    @property
    def variant(self) -> str:
        return "-points" if self.neighbours is None else f"-{self.neighbours}-nearest"

    @abstractmethod
    def points(self, paths: list[Path]) -> tuple[Tensor, Tensor]:
        """Read features `[nodes, features]` and classes `[nodes]`."""

    def read(self, paths: list[Path]) -> Data:
        x, y = self.points(paths)
        if self.neighbours is None:
            edges = torch.empty(2, 0, dtype=torch.int64)
            return Data(x=x, y=y, edge_index=edges, without_edges=True)
        return Data(x=x, y=y, edge_index=nearest_neighbours(x, self.neighbours))

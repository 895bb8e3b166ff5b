"""Networks given as edge lists: the graphs of the reconstruction task."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from curvlab.data.files.cleaning import simple_edges
from curvlab.data.files.sources import Downloaded


class EdgeListNetwork(Downloaded):
    """A simple undirected graph from a two-column, comma-separated edge list without a header.

    The statistics are `num_nodes`, `num_edges` (undirected) and `max_degree`.
    """

    def facts(self, data: Data) -> Mapping[str, Any]:
        return {
            "num_nodes": data.num_nodes,
            "num_edges": data.num_edges // 2,
            "max_degree": int(degree(data.edge_index[0], data.num_nodes).max()),
        }

    def read(self, paths: list[Path]) -> Data:
        edge_index, num_nodes = undirected_graph(read_edge_list(paths[0]))
        return Data(edge_index=edge_index, num_nodes=num_nodes)


def read_edge_list(path: Path) -> np.ndarray:
    """Parse a two-column, comma-separated edge list into node identifiers `[edges, 2]`."""
    edges = pd.read_csv(path, header=None, dtype=np.int64, encoding_errors="replace").to_numpy()
    if edges.shape[1] != 2 or edges.min() < 0:
        raise ValueError("expected two node numbers per line, such as 12,34")
    return edges


def number_nodes(edges: np.ndarray) -> tuple[Tensor, int]:
    """Number the nodes by first appearance; return the edges `[2, edges]` and their number."""
    numbers, nodes = pd.factorize(edges.ravel())
    return torch.from_numpy(numbers.reshape(-1, 2).T.copy()), len(nodes)


def undirected_graph(edges: np.ndarray) -> tuple[Tensor, int]:
    """Number nodes by first appearance; return the simple `edge_index [2, 2M]` and their number."""
    edge_index, num_nodes = number_nodes(edges)
    return simple_edges(edge_index, num_nodes), num_nodes

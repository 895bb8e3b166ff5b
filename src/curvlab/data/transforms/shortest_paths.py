"""Shortest paths between all nodes."""

from typing import Annotated

import numpy as np
import torch
from annotated_types import Interval
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.errors import UsageError

MAX_NODES = 20_000  # 400 MB, and as many scores in every layer
ROWS = 1_024  # of the matrix that are computed at a time, in float64


class ShortestPaths(GraphTransform):
    """Lengths of the shortest paths between all nodes, `hops [nodes, nodes]` (uint8).

    Longer paths count as `longest`, and `longest + 1` marks that there is none.

    Args:
        longest: length that longer paths count as.
    """

    cacheable = True
    of_pairs = True
    reads = ("edge_index",)
    writes = ("hops",)

    longest: Annotated[int, Interval(ge=1, le=254)] = 20

    def forward(self, data: Data) -> Data:
        nodes = int(data.num_nodes or 0)
        if nodes > MAX_NODES:
            raise UsageError(
                f"a graph of {nodes:,} nodes has {nodes**2:.1e} paths, which takes more memory "
                f"than most machines have: choose a model for more than {MAX_NODES:,} nodes"
            )
        source, target = data.edge_index.numpy()
        graph = csr_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
        hops = np.empty((nodes, nodes), dtype=np.uint8)
        for start in range(0, nodes, ROWS):
            rows = np.arange(start, min(start + ROWS, nodes))
            lengths = dijkstra(graph, unweighted=True, indices=rows)
            connected = np.isfinite(lengths)
            hops[rows] = np.where(connected, np.minimum(lengths, self.longest), self.longest + 1)
        data.hops = torch.from_numpy(hops)
        return data

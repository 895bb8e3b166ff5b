"""Nodes within 1, 2, ... hops of each node: the relations of NodeFormer's bias."""

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, normalised_weights
from curvlab.graph.sparse_matrix import sparse_rows
from curvlab.options import NonNegativeInt


class NeighbourRelations(GraphTransform):
    """Normalised adjacencies of the nodes at most 1, ..., `orders` steps away, one below the other.

    `A_r[v, u] = 1 / sqrt(d_v d_u)` for u at most r steps from v, v itself among them, d their
    numbers; edges count in both directions. Source: NodeFormer (Wu et al. 2022); its code squares
    the support each time: 1, 2, 4 steps.

    Args:
        orders: number of blocks; 0 adds nothing.
    """

    reads = ("edge_index",)
    writes = ("relations",)

    orders: NonNegativeInt = 1

    def forward(self, data: Data) -> Data:
        """Add `relations [orders * nodes, nodes]` (sparse CSR)."""
        if not self.orders:
            return data
        nodes = int(data.num_nodes or 0)
        edges = csr_array((np.ones(data.num_edges), data.edge_index.numpy()), shape=(nodes, nodes))
        step = ((edges + edges.T + eye_array(nodes)) > 0).astype(np.float32)
        blocks = [step]
        for _ in range(self.orders - 1):
            blocks.append(((blocks[-1] @ step) > 0).astype(np.float32))
        pairs = [torch.from_numpy(np.stack(block.nonzero())).long() for block in blocks]
        weights = torch.cat([normalised_weights(ends[0], ends[1], nodes) for ends in pairs])
        row = torch.cat([ends[0] + r * nodes for r, ends in enumerate(pairs)])
        column = torch.cat([ends[1] for ends in pairs])
        shape = self.orders * nodes, nodes
        weights = weights.to(torch.get_default_dtype())
        data.relations = sparse_rows(row, column, weights, shape)
        return data

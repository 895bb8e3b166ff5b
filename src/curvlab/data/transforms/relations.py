"""Nodes within 1, 2, ... steps of each node: the relations of NodeFormer's bias."""

import warnings

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform
from curvlab.options import NonNegativeInt


class NeighbourRelations(GraphTransform):
    """Normalised adjacencies of the nodes at most 1, ..., `orders` steps away, one below the other.

    `A_r[v, u] = 1 / sqrt(d_v d_u)` for u at most r steps from v, v itself among them, d their
    numbers; edges count in both directions, so that every block is symmetric. Blocks grow
    fast with r. Not cached: they take less time to make than to read.

    Source: NodeFormer (Wu et al. 2022), adjacency of order r taken as the support of
    `(A + I)^r`. (The released code squares the support each time: 1, 2, 4 steps.)

    Args:
        orders: number of blocks; 0 adds nothing.
    """

    reads = ("edge_index",)
    writes = ("relations",)

    def __init__(self, orders: NonNegativeInt = 1) -> None:
        self.orders = orders

    @property
    def cache_key(self) -> str:
        """Name and options."""
        return f"relations-{self.orders}"

    def forward(self, data: Data) -> Data:
        """Add `relations [orders * nodes, nodes]` (sparse CSR)."""
        if not self.orders:
            return data
        nodes = int(data.num_nodes or 0)
        source, target = data.edge_index.numpy()
        step = _within_a_step(source, target, nodes)
        blocks = [step]
        for _ in range(self.orders - 1):
            blocks.append(((blocks[-1] @ step) > 0).astype(np.float32))
        stacked = vstack([_normalised(block) for block in blocks], format="csr")
        with warnings.catch_warnings():
            # What is used of CSR (products with dense matrices, moving to a device) is stable.
            warnings.filterwarnings("ignore", ".*Sparse CSR tensor support is in beta.*")
            data.relations = torch.sparse_csr_tensor(
                torch.from_numpy(stacked.indptr.astype(np.int64)),
                torch.from_numpy(stacked.indices.astype(np.int64)),
                torch.from_numpy(stacked.data),
                stacked.shape,
                check_invariants=True,
            )
        return data

    def __repr__(self) -> str:
        return f"NeighbourRelations(orders={self.orders})"


def _within_a_step(source: np.ndarray, target: np.ndarray, nodes: int) -> csr_array:
    """The support of `A + A^T + I`, `[nodes, nodes]` of ones."""
    loops = np.arange(nodes)
    row, col = np.concatenate([source, target, loops]), np.concatenate([target, source, loops])
    edges = csr_array((np.ones(len(row), np.float32), (row, col)), shape=(nodes, nodes))
    return (edges > 0).astype(np.float32)


def _normalised(support: csr_array) -> csr_array:
    """`D^-1/2 S D^-1/2` of a symmetric support, columns in order."""
    support.sort_indices()
    counts = np.diff(support.indptr)
    scale = (1 / np.sqrt(counts)).astype(torch.empty(0).numpy().dtype)  # of new tensors
    values = np.repeat(scale, counts) * scale[support.indices]
    return csr_array((values, support.indices, support.indptr), shape=support.shape)

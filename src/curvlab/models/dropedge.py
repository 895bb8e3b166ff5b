"""DropEdge: a graph network that sees a random part of the edges in each training step."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.errors import UsageError
from curvlab.models.baselines import GraphNetwork


class DropEdgeNetwork(GraphNetwork):
    """A `GraphNetwork` whose layers all see the edges that a step has left, and the graph in tests.

    Each undirected edge is left out with probability p, with both of its directions, by a weight
    of 0: as `torch_geometric.utils.dropout_edge(force_undirected=True)` in distribution, but of one
    shape in every step, so that no device waits for a count. Layers that normalise by the weights
    they are given, GCN's, normalise by the degrees that are left.

    Args:
        edge_dropout: p, from 0 up to 1.
        **network: of `GraphNetwork`, with layers that take weights of edges and keep nothing of
            them.

    Raises:
        UsageError: the network does not take a list of edges.

    Source: DropEdge (Rong et al. 2020), one draw for all layers.
    """

    def __init__(self, edge_dropout: float, **network: Any) -> None:
        super().__init__(**network)
        if self.adjacency != "edge_index":
            raise UsageError(
                f"adjacency={self.adjacency} has no edges to leave out: use adjacency=edge_index"
            )
        self.edge_dropout = edge_dropout
        self._seen: Tensor | None = None
        self._pair: Tensor | None = None
        self._pairs = 0

    def _graph(self, batch: Data) -> tuple[Tensor, ...]:
        """The edges, in training with a weight of 0 or 1 each, `[edges]`."""
        edges = self._edges(batch)
        if not self.training:
            return (edges,)
        loops = int(batch.num_nodes or 0) if self.self_loops else 0
        if edges is not self._seen:
            self._seen = edges
            between = edges[:, : edges.shape[1] - loops]
            self._pair, self._pairs = _undirected(between, int(batch.num_nodes or 0))
        kept = torch.rand(self._pairs, device=edges.device) >= self.edge_dropout
        weights = kept.to(batch.x.dtype)[self._pair]
        return edges, torch.cat([weights, weights.new_ones(loops)])


def _undirected(edge_index: Tensor, nodes: int) -> tuple[Tensor, int]:
    """The number `[edges]` of each edge's undirected one, and how many those are."""
    first, second = edge_index.amin(0), edge_index.amax(0)
    pairs, pair = torch.unique(first * nodes + second, return_inverse=True)
    return pair, len(pairs)

"""DropEdge: towards deep graph convolutional networks on node classification.

Rong et al. 2020, arXiv:1907.10903.
"""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import remove_self_loops

from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.graph_network import GraphNetwork
from curvlab.options import Dropout


class DropEdge(GraphNetwork):
    """A GCN that sees a random part of the edges in each training step, the same in all layers.

    Each undirected edge is left out with probability p, in both of its directions, by a weight of
    0: as `torch_geometric.utils.dropout_edge(force_undirected=True)` in distribution, but of one
    shape in every step, so that no device waits for a count. The layers normalise by the degrees
    that are left.

    Args:
        in_channels: number of input features.
        edge_dropout: p, the probability that a step leaves out an undirected edge.
        **options: those of `GraphNetwork`.
    """

    def __init__(self, in_channels: int, edge_dropout: Dropout = 0.3, **options: Any) -> None:
        super().__init__(in_channels, GCNConv, "edge_index", **options)
        self.edge_dropout = edge_dropout

    def _graph(self, batch: Data) -> tuple[Tensor, ...]:
        """The edges, in training with a weight of 0 or 1 each, `[edges]`."""
        edges = self._edges(batch)
        if not self.training:
            return (edges,)
        pair, pairs = SparseGraph.of(batch).derived("pairs", ("edge_index", "x"), _undirected)
        kept = torch.rand(pairs, device=edges.device) >= self.edge_dropout
        weights = kept.to(batch.x.dtype)[pair]
        loops = len(batch.x) if self.self_loops else 0
        return edges, torch.cat([weights, weights.new_ones(loops)])


def _undirected(batch: Data) -> tuple[Tensor, int]:
    """The number `[edges]` of each edge's undirected one, without loops, and how many those are."""
    edge_index, nodes = remove_self_loops(batch.edge_index)[0], len(batch.x)
    first, second = edge_index.amin(0), edge_index.amax(0)
    pairs, pair = torch.unique(first * nodes + second, return_inverse=True)
    return pair, len(pairs)

"""Graphormer: Do transformers really perform badly for graph representation?

Ying et al. 2021, arXiv:2106.05234. Attention over all nodes with embeddings of degrees and biases
of shortest paths.
"""

from collections.abc import Sequence
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Interval
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import degree

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.row_blocks import in_blocks
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.encoder import FlatEncoder
from curvlab.models.widths import check_divides
from curvlab.options import Dropout, PositiveInt

EMBEDDING_DEVIATION = 0.02
"""Of the embeddings of degrees and the biases, at the start."""


class SpatialAttention(nn.Module):
    r"""Softmax attention with a bias for each distance, `softmax(Q K^T / sqrt d + b[hops]) V`.

    Time is quadratic in the nodes, memory is that of a block of scores (`in_blocks`).

    Shapes: `[nodes, dim]` and hops `[nodes, nodes]`, whole numbers below `distances`; returns
    `[nodes, dim]`.

    Args:
        dim: width.
        heads: which divide the width.
        distances: number of distances that there are, the unreachable one included.
    """

    def __init__(self, dim: int, heads: int, distances: int) -> None:
        super().__init__()
        self.projection = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.bias = nn.Parameter(EMBEDDING_DEVIATION * torch.randn(heads, distances))
        self.heads, self.distances = heads, distances

    def forward(self, x: Tensor, hops: Tensor) -> Tensor:
        """Attend to all nodes."""
        parts = self.projection(x).unflatten(-1, (3, self.heads, -1)).movedim(0, -2)
        query, key, value = parts.unbind(0)
        # A look-up in one array of numbers: by rows, its derivative takes fifty times as long.
        first = torch.arange(self.heads, dtype=torch.int32, device=hops.device) * self.distances

        def of_rows(rows: slice) -> Tensor:
            near = hops[rows]
            places = (first[:, None] + near.flatten()).flatten()
            bias = self.bias.flatten().index_select(0, places).unflatten(0, (-1, *near.shape))
            return F.scaled_dot_product_attention(query[:, rows], key, value, bias.to(query.dtype))

        heads = in_blocks(of_rows, len(x), self.heads * len(x))
        return self.out(heads.movedim(0, 1).flatten(1))


class Graphormer(FlatEncoder):
    """`x_0 = W x + b + in[deg] + out[deg]`, then post-norm layers of `SpatialAttention` and an MLP.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`, `batch.hops [nodes,
    nodes]`; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        longest_path: hops that longer paths are taken for.
        largest_degree: degree that larger ones are taken for.
        dim: width.
        layers: number of layers.
        heads: of the attention, which divide the width.
        ffn_dim: inner width of the feed-forward networks.
        dropout: of the layers' two parts.

    Source: Section 3, without edge features and without its token for the whole graph. All layers
    share the biases (Section 3.1.2); norms follow the layers, as in the tables of Hypformer.
    """

    revision = 3  # 2: the layers share the biases; 3: as `Encoder`

    def __init__(
        self,
        in_channels: int,
        longest_path: Annotated[int, Interval(ge=1, le=254)] = 20,
        largest_degree: PositiveInt = 64,
        dim: PositiveInt = 64,
        layers: PositiveInt = 2,
        heads: PositiveInt = 1,
        ffn_dim: PositiveInt = 256,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        self.input = FeatureLinear(in_channels, dim)
        self.degrees = nn.ParameterList(
            EMBEDDING_DEVIATION * torch.randn(largest_degree + 1, dim) for _ in ("in", "out")
        )
        self.attentions = nn.ModuleList(
            SpatialAttention(dim, heads, longest_path + 2) for _ in range(layers)
        )
        for attention in self.attentions[1:]:
            attention.bias = self.attentions[0].bias
        self.feed_forwards = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, ffn_dim), nn.GELU(), nn.Linear(ffn_dim, dim))
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * layers))
        self.largest_degree = largest_degree
        self.longest_path = longest_path
        self.dim = dim
        self.dropout = dropout

    def transforms(self) -> Sequence[GraphTransform]:
        """Shortest paths."""
        return (ShortestPaths(self.longest_path),)

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = self.input(SparseGraph.of(batch).features)
        x = x + self._of_degrees(batch.edge_index, len(x))
        norms = iter(self.norms)
        for attention, feed_forward in zip(self.attentions, self.feed_forwards, strict=True):
            x = next(norms)(x + self._drop(attention(x, batch.hops)))
            x = next(norms)(x + self._drop(feed_forward(x)))
        return x

    def _of_degrees(self, edge_index: Tensor, nodes: int) -> Tensor:
        source, target = edge_index
        inward, outward = (
            degree(ends, nodes, torch.long).clamp(max=self.largest_degree)
            for ends in (target, source)
        )
        return F.embedding(inward, self.degrees[0]) + F.embedding(outward, self.degrees[1])

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

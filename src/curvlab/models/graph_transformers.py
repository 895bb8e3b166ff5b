"""Transformers over all nodes: a plain one, GraphTrans, GraphGPS and Graphormer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from annotated_types import Interval
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GPSConv
from torch_geometric.utils import degree

from curvlab.data.transforms.graph import GraphTransform
from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.layers.elementwise import dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.row_blocks import map_row_blocks
from curvlab.models.encoder import Encoder, FlatEncoder, check_divides
from curvlab.models.graph_network import GCN
from curvlab.options import Dropout, PositiveInt

EMBEDDING_DEVIATION = 0.02
"""Initial standard deviation of Graphormer's embeddings of degrees and its biases."""


class AttentionNetwork(FlatEncoder):
    """Layers in which all nodes attend to all nodes, in time quadratic in the nodes.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`; returns `[nodes, dim]`.

    Args:
        ffn_dim: inner width of the feed-forward networks.
        dropout: dropout of the layers.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        self.dim_out = dim


class NodeTransformer(AttentionNetwork):
    """Pre-norm layers of softmax attention over all nodes, without encodings of the graph.

    Paper: A plain transformer whose tokens are all nodes; it uses no edge.

    Source: PolyFormer, Table 4, where its scores are those of the MLP.
    """

    edgeless = True

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 64,
        layers: PositiveInt = 1,
        heads: PositiveInt = 1,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(dim, heads)
        self.input = FeatureLinear(in_channels, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, heads, 2 * dim, dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)

    def forward(self, batch: Data) -> Tensor:
        x = self.input(SparseGraph.from_data(batch).features).unsqueeze(0)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x.squeeze(0))


class FrontGCN(GCN):
    """The first part of GraphTrans: a GCN that normalises and activates its last layer too."""

    revision = 2  # as `Encoder`: it has no skip_average

    def __init__(
        self, in_channels: int, dim: int, layers: PositiveInt = 2, dropout: Dropout = 0.0
    ) -> None:
        super().__init__(
            in_channels,
            dim,
            layers,
            dropout=dropout,
            skip_average=False,
            normalisation="batch",
            last_activation=True,
        )


class GraphTrans(AttentionNetwork):
    """`H = LN(GNN(X, E))`, then post-norm transformer layers over all nodes of H.

    Args:
        graph_network: factory of the graph network, from `in_channels` and `dim`.

    Paper: GraphTrans: Representing long-range context for graph neural networks with global
    attention. Wu et al. 2021, arXiv:2201.08821.

    Defaults: two layers of one head, for graphs of one component. The paper has four layers of
    four heads.

    Source: Section 3, without its token for the whole graph.
    """

    def __init__(
        self,
        in_channels: int,
        graph_network: Callable[..., Encoder] = FrontGCN,
        dim: PositiveInt = 64,
        layers: PositiveInt = 2,
        heads: PositiveInt = 1,
        ffn_dim: PositiveInt = 256,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(dim, heads)
        self.graph_network = graph_network(in_channels=in_channels, dim=dim)
        self.norm = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, ffn_dim, dropout, "relu", batch_first=True)
            for _ in range(layers)
        )

    def forward(self, batch: Data) -> Tensor:
        x = self.norm(self.graph_network(batch)).unsqueeze(0)
        for layer in self.layers:
            x = layer(x)
        return x.squeeze(0)


class GraphGPS(AttentionNetwork):
    """Layers that add a graph convolution and attention over all nodes, followed by an MLP.

    `x_0 = drop(relu(W x + b))`. A layer is PyTorch Geometric's `GPSConv` with a `GCNConv` and batch
    norms.

    Args:
        attention: `performer` (linear in the nodes) or `multihead` (quadratic).
        dropout: dropout of the mapped features and of both parts of a layer.

    Paper: GraphGPS: Recipe for a general, powerful, scalable graph transformer. Rampasek et al.
    2022, arXiv:2205.12454.

    Source: the paper, without positional encodings.
    """

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 64,
        layers: PositiveInt = 2,
        heads: PositiveInt = 1,
        attention: Literal["performer", "multihead"] = "performer",
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__(dim, heads)
        self.input = FeatureLinear(in_channels, dim)
        # By default PyTorch Geometric's heads are 64 wide and share one activation module.
        performer: dict[str, Any] = {"head_channels": dim // heads, "kernel": nn.ReLU()}
        self.layers = nn.ModuleList(
            GPSConv(
                dim,
                GCNConv(dim, dim),
                heads,
                dropout,
                attn_type=attention,
                attn_kwargs=dict(performer) if attention == "performer" else None,
                norm_kwargs={"allow_single_element": True},
            )
            for _ in range(layers)
        )
        self.dropout = dropout

    def forward(self, batch: Data) -> Tensor:
        x = F.relu(self.input(SparseGraph.from_data(batch).features))
        x = dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, batch.edge_index)
        return x


class SpatialAttention(nn.Module):
    r"""Softmax attention with a bias for each distance, `softmax(Q K^T / sqrt d + b[hops]) V`.

    Time is quadratic in the nodes; memory is that of one block of scores (`map_row_blocks`).

    Shapes: `[nodes, dim]` and hops `[nodes, nodes]`, whole numbers below `distances`; returns
    `[nodes, dim]`.
    """

    def __init__(self, dim: int, heads: int, distances: int) -> None:
        super().__init__()
        self.projection = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.bias = nn.Parameter(EMBEDDING_DEVIATION * torch.randn(heads, distances))
        self.heads = heads
        self.distances = distances

    def forward(self, x: Tensor, hops: Tensor) -> Tensor:
        parts = self.projection(x).unflatten(-1, (3, self.heads, -1)).movedim(0, -2)
        query, key, value = parts.unbind(0)
        # Selecting from the flat array: the derivative of a selection of rows is 50 times slower.
        offsets = torch.arange(self.heads, dtype=torch.int32, device=hops.device) * self.distances

        def attend_rows(rows: slice) -> Tensor:
            row_hops = hops[rows]
            indices = (offsets[:, None] + row_hops.flatten()).flatten()
            bias = self.bias.flatten().index_select(0, indices)
            bias = bias.unflatten(0, (-1, *row_hops.shape))
            return F.scaled_dot_product_attention(query[:, rows], key, value, bias.to(query.dtype))

        heads = map_row_blocks(attend_rows, len(x), self.heads * len(x))
        return self.out(heads.movedim(0, 1).flatten(1))


class Graphormer(AttentionNetwork):
    """`x_0 = W x + b + in[deg] + out[deg]`, then post-norm layers of `SpatialAttention` and an MLP.

    Shapes: `batch.hops [nodes, nodes]`, others as in `AttentionNetwork`.

    Args:
        longest_path: largest length of a path; longer paths count as this length.
        largest_degree: largest degree; larger degrees count as this one.

    Paper: Graphormer: Do transformers really perform badly for graph representation? Ying et al.
    2021, arXiv:2106.05234.

    Defaults: two layers of one head. The paper has 12 layers of 32 heads.

    Source: Section 3, without edge features and without the token for the whole graph. All layers
    share the biases (Section 3.1.2). Norms follow the layers, as in the tables of Hypformer.
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
        super().__init__(dim, heads)
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
        self.transforms = self.required_transforms({"longest_path": longest_path})
        self.largest_degree = largest_degree
        self.dropout = dropout

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (ShortestPaths(options["longest_path"]),)

    def forward(self, batch: Data) -> Tensor:
        x = self.input(SparseGraph.from_data(batch).features)
        for ends, table in zip((1, 0), self.degrees, strict=True):
            degrees = degree(batch.edge_index[ends], len(x), torch.long)
            x = x + F.embedding(degrees.clamp(max=self.largest_degree), table)
        norms = iter(self.norms)
        for attention, feed_forward in zip(self.attentions, self.feed_forwards, strict=True):
            mixed = dropout(attention(x, batch.hops), self.dropout, self.training)
            x = next(norms)(x + mixed)
            x = next(norms)(x + dropout(feed_forward(x), self.dropout, self.training))
        return x

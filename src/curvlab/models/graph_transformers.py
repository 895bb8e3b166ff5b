"""Transformers over all nodes, behind or beside a graph network: GraphTrans and GraphGPS."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GPSConv

from curvlab.errors import UsageError
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.models.encoder import Encoder, FlatEncoder


class GraphTrans(FlatEncoder):
    """`H = LN(GNN(X, E))`, then post-norm transformer layers over all nodes of H.

    The graph enters by the network in front alone. PyTorch's own layers; time is quadratic in the
    nodes, and the scores are never kept where the device has a kernel for that.

    Shapes: as its graph network's; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        graph_network: maps `in_channels` and `dim` to the network in front.
        dim: width.
        layers: of the transformer.
        heads: which divide the width.
        ffn_dim: inner width of the feed-forward networks.
        dropout: of the transformer.

    Source: GraphTrans (Wu et al. 2021), Section 3, without its token for the whole graph.
    """

    def __init__(
        self,
        in_channels: int,
        graph_network: Callable[..., Encoder],
        dim: int,
        layers: int,
        heads: int,
        ffn_dim: int,
        dropout: float,
    ) -> None:
        super().__init__()
        _check_heads(dim, heads)
        self.graph_network = graph_network(in_channels=in_channels, dim=dim)
        self.norm = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, ffn_dim, dropout, "relu", batch_first=True)
            for _ in range(layers)
        )
        self.dim = dim

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = self.norm(self.graph_network(batch)).unsqueeze(0)
        for layer in self.layers:
            x = layer(x)
        return x.squeeze(0)


class GraphGPS(FlatEncoder):
    """In each layer the sum of a graph convolution and of attention over all nodes, then an MLP.

    `x_0 = drop(relu(W x + b))`; PyTorch Geometric's `GPSConv` around a `GCNConv`, with batch norms.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`; returns `[nodes, dim]`.

    Args:
        in_channels: number of input features.
        dim: width.
        layers: number of layers.
        heads: of the attention, which divide the width.
        attention: `performer`, linear in the nodes, or `multihead`, quadratic.
        dropout: of the features' map and of both parts of a layer.

    Source: GraphGPS (Rampasek et al. 2022), without positional encodings.
    """

    def __init__(
        self,
        in_channels: int,
        dim: int,
        layers: int,
        heads: int,
        attention: str,
        dropout: float,
    ) -> None:
        super().__init__()
        _check_heads(dim, heads)
        if attention not in ("performer", "multihead"):
            raise UsageError(f"model.attention={attention} must be performer or multihead")
        self.input = FeatureLinear(in_channels, dim)
        self.layers = nn.ModuleList(
            GPSConv(
                dim,
                GCNConv(dim, dim),
                heads,
                dropout,
                attn_type=attention,
                attn_kwargs=_performer(dim // heads) if attention == "performer" else None,
            )
            for _ in range(layers)
        )
        self.dim = dim
        self.dropout = dropout

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = dropout(F.relu(self.input(batch.x)), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, batch.edge_index)
        return x


def _performer(head_dim: int) -> dict[str, Any]:
    """PyTorch Geometric's heads are 64 wide by default and share one activation module."""
    return {"head_channels": head_dim, "kernel": nn.ReLU()}


def _check_heads(dim: int, heads: int) -> None:
    if dim % heads:
        raise UsageError(f"model.heads={heads} does not divide model.dim={dim}")

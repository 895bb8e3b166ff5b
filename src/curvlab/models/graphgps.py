"""GraphGPS: Recipe for a general, powerful, scalable graph transformer.

Rampasek et al. 2022, arXiv:2205.12454.
"""

from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GPSConv

from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.models.encoder import FlatEncoder
from curvlab.models.widths import check_divides
from curvlab.options import Dropout, PositiveInt


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
        super().__init__()
        check_divides("heads", heads, dim)
        self.input = FeatureLinear(in_channels, dim)
        self.layers = nn.ModuleList(
            GPSConv(
                dim,
                GCNConv(dim, dim),
                heads,
                dropout,
                attn_type=attention,
                attn_kwargs=_performer(dim // heads) if attention == "performer" else None,
                norm_kwargs={"allow_single_element": True},
            )
            for _ in range(layers)
        )
        self.dim = dim
        self.dropout = dropout

    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        x = F.relu(self.input(SparseGraph.of(batch).features))
        x = dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, batch.edge_index)
        return x


def _performer(head_dim: int) -> dict[str, Any]:
    """PyTorch Geometric's heads are 64 wide by default and share one activation module."""
    return {"head_channels": head_dim, "kernel": nn.ReLU()}

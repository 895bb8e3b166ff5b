"""GAT: Graph attention networks (Velickovic et al. 2018, arXiv:1710.10903)."""

from functools import partial
from typing import Any

from torch_geometric.nn import GATConv

from curvlab.models.graph_network import GraphNetwork
from curvlab.options import Dropout, PositiveInt


class GAT(GraphNetwork):
    """Graph attention network.

    Args:
        in_channels: number of input features.
        heads: of width `dim / heads`, concatenated.
        last_heads: heads of the layer that makes the logits; null: as many as the others.
        attention_dropout: of the attention's weights.
        **options: those of `GraphNetwork`.
    """

    def __init__(
        self,
        in_channels: int,
        heads: PositiveInt = 2,
        last_heads: PositiveInt | None = None,
        attention_dropout: Dropout = 0.0,
        **options: Any,
    ) -> None:
        layer = partial(GATConv, heads=heads, dropout=attention_dropout)
        super().__init__(
            in_channels, layer, "edge_index", heads=heads, last_heads=last_heads, **options
        )
